"""A certificate for 127.0.0.1 that signs itself, for tests of TLS."""

import subprocess
from pathlib import Path


def make_certificate(
    folder: Path, *, days: int = 2, name: str = "IP:127.0.0.1"
) -> tuple[Path, Path]:
    """The paths of a certificate and its key, made in this folder."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", key, "-out", cert, "-days", str(days), "-subj", "/CN=127.0.0.1",
         "-addext", f"subjectAltName={name}"],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return cert, key
