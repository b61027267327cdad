"""The files that settings name: credentials, certificates and groups."""

import re
import ssl
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rgd.adapters.exchange.credentials import read_token
from rgd.adapters.http.tls import Certificates
from rgd.app.clock import SystemClock
from rgd.app.doctor.findings import Report
from rgd.config.credential_files import check_credential_files
from rgd.config.faults import Faults
from rgd.config.groups import load_groups
from rgd.config.plain_files import read_plain_file
from rgd.config.settings import Settings
from rgd.config.tokens import load_tokens
from rgd.errors import ConfigError, Fault

#: Larger groups files take longer than a check may.
GROUPS_BYTES_MAX: Final = 1 << 20
PEM_BYTES_MAX: Final = 1 << 20
#: A certificate that ends within this time is a warning.
ENDS_SOON_DAYS: Final = 14

_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
#: The validity of a certificate (RFC 5280): a sequence of two times, each UTCTime or GeneralizedTime.
_TIME: Final = rb"(?:\x17\x0d\d{12}Z|\x18\x0f\d{14}Z)"
_VALIDITY: Final = re.compile(rb"\x30[\x1e-\x22](" + _TIME + rb")(" + _TIME + rb")", re.DOTALL)


def tokens(report: Report, settings: Settings) -> None:
    """The tokens of callers, and those that this daemon shows Pulsar."""
    check_credential_files(settings, Faults("settings"))
    exchange = settings.exchange
    for name in ("token_file", "admin_token_file"):
        file = getattr(exchange, name)
        if file is not None:
            read_token(file, f"exchange.{name}")
            report.ok(f"{file} has a token for Pulsar")
    if settings.http.tokens_file is None:
        report.ok("no http.tokens_file: whoever reaches the daemon may ask it everything")
    else:
        count = len(load_tokens(settings.http.tokens_file))
        report.ok(f"{settings.http.tokens_file} has {count} tokens")


def certificates(report: Report, settings: Settings) -> None:
    """Whether certificates are in force, and keys fit them."""
    http, exchange = settings.http, settings.exchange
    named = {
        "http.tls_cert": http.tls_cert,
        "http.tls_client_ca": http.tls_client_ca,
        "exchange.tls_ca": exchange.tls_ca,
        "exchange.tls_cert": exchange.tls_cert,
        "exchange.admin_ca_file": exchange.admin_ca_file,
    }
    for setting, file in named.items():
        if file is not None:
            _look_at_times(report, setting, file)
    if http.tls_cert is not None and http.tls_key is not None:
        Certificates(http.tls_cert, http.tls_key, http.tls_client_ca)
    if exchange.tls_cert is not None:
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_cert_chain(exchange.tls_cert, exchange.tls_key, password="")
        except OSError as error:
            expected = f"expected a PEM certificate and its key, got {error}"
            raise ConfigError(Fault("settings", "exchange.tls_cert", expected)) from error
    if not any(named.values()):
        report.ok("none are configured")


def _look_at_times(report: Report, setting: str, file: Path) -> None:
    times = list(validities(read_plain_file(file, PEM_BYTES_MAX)))
    if not times:
        report.fault(f"{setting}: {file}: expected PEM certificates, got none")
        return
    begins, ends = zip(*times, strict=True)
    # A chain needs all of its certificates. Of authorities one has to be valid: the old one may stand beside the new one.
    is_chain = setting.endswith("tls_cert")
    begin, end = (max(begins), min(ends)) if is_chain else (min(begins), max(ends))
    now = datetime.fromtimestamp(SystemClock().unix_ms() / 1000, UTC)
    if now > end:
        report.fault(f"{setting}: {file} expired on {end:%Y-%m-%d %H:%M} UTC; replace it")
    elif now < begin:
        report.fault(
            f"{setting}: {file} is valid from {begin:%Y-%m-%d %H:%M} UTC; set the clock, or replace it"
        )
    elif (end - now).days < ENDS_SOON_DAYS:
        report.warning(f"{setting}: {file} expires in {(end - now).days} days; replace it")
    else:
        report.ok(f"{setting}: {file} is valid until {end:%Y-%m-%d}")


def validities(pem: bytes) -> Iterator[tuple[datetime, datetime]]:
    """From when until when each certificate of a PEM file is valid."""
    for text in _PEM.findall(pem.decode("ascii", "replace")):
        # What is damaged is none.
        with suppress(ValueError):
            if found := _VALIDITY.search(ssl.PEM_cert_to_DER_cert(text)):
                yield _time(found[1]), _time(found[2])


def _time(der: bytes) -> datetime:
    digits = der[2:].decode("ascii")
    # RFC 5280: years of two digits are 1950 to 2049, which is not what %y says.
    if len(digits) == 13:
        digits = ("19" if digits >= "50" else "20") + digits
    return datetime.strptime(digits, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def groups(report: Report, settings: Settings) -> None:
    """Whether the groups file can be used."""
    file = settings.policies.file
    if file is None:
        report.ok(f"no groups file: policies come from {settings.policies.source}")
    elif file.exists() and file.stat().st_size > GROUPS_BYTES_MAX:
        report.warning(f"{file} is too large to be checked here; run rgd validate {file}")
    else:
        report.ok(f"{file} has {len(load_groups(file).groups)} groups")
