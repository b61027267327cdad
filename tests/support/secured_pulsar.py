"""An Apache Pulsar that asks for tokens, lets a role do only what was granted, and speaks TLS too.

Law: keys and certificates are made here for one run, and are worth nothing elsewhere.
How: tokens are JSON Web Tokens with a shared secret (HS256), written by hand; the certificate is
openssl's, signed by itself, for 127.0.0.1.
"""

import base64
import hashlib
import hmac
import json
import secrets
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.support import components
from tests.support.child_processes import free_ports
from tests.support.pulsar_operator import Operator
from tests.support.pulsar_standalone import PulsarStandalone

ADMIN = "admin"
_TIMEOUT_S = 60


class SecuredPulsar:
    """Started with the object; `close` ends it.

    Args:
        folder: where everything goes.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._secret = secrets.token_bytes(32)
        self.cert, self._key = _certificate(folder)
        (self.tls_port,) = free_ports(1)
        self.pulsar = PulsarStandalone(
            folder / "pulsar",
            settings={
                "authenticationEnabled": "true",
                "authorizationEnabled": "true",
                "authenticationProviders": (
                    "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
                ),
                "authenticationRefreshCheckSeconds": "1",
                "tokenSecretKey": f"data:;base64,{base64.b64encode(self._secret).decode()}",
                "superUserRoles": ADMIN,
                "brokerClientAuthenticationPlugin": (
                    "org.apache.pulsar.client.impl.auth.AuthenticationToken"
                ),
                "brokerClientAuthenticationParameters": f"token:{self.token(ADMIN)}",
                "brokerServicePortTls": str(self.tls_port),
                "tlsCertificateFilePath": str(self.cert),
                "tlsKeyFilePath": str(self._key),
            },
            admin_token=self.token(ADMIN),
        )
        self.pulsar.start()

    @property
    def tls_url(self) -> str:
        """For Pulsar clients that trust `cert`."""
        return f"pulsar+ssl://127.0.0.1:{self.tls_port}"

    def token(self, role: str, *, seconds: float | None = None) -> str:
        """A token for a role, for ever or for some seconds from now."""
        claims: dict[str, object] = {"sub": role}
        if seconds is not None:
            claims["exp"] = int(time.time() + seconds)
        signed = f"{_base64({'alg': 'HS256', 'typ': 'JWT'})}.{_base64(claims)}"
        digest = hmac.digest(self._secret, signed.encode(), hashlib.sha256)
        return f"{signed}.{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"

    def admin(self, method: str, path: str, body: object = None) -> None:
        """Change something, as a superuser."""
        Operator(self.pulsar, token=self.token(ADMIN)).ask(method, path, body)

    def daemon_settings(self, role: str, namespace: str, token_file: Path) -> dict[str, str]:
        """Permit a role what a daemon needs; a daemon's environment, with TLS and the role's token."""
        self.admin("POST", f"namespaces/{namespace}/permissions/{role}", ["produce", "consume"])
        token_file.touch(0o600)
        token_file.write_text(self.token(role))
        return {"RGD_EXCHANGE__TOKEN_FILE": str(token_file), "RGD_EXCHANGE__TLS_CA": str(self.cert)}

    def close(self) -> None:
        """End it."""
        self.pulsar.close()


def _base64(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _certificate(folder: Path) -> tuple[Path, Path]:
    openssl = components.need("openssl", shutil.which("openssl"), remedy="install openssl")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-keyout", str(key), "-out", str(cert), "-subj", "/CN=rgd-test"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True, timeout=_TIMEOUT_S)
    return cert, key
