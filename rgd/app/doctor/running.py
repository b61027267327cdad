"""A daemon that runs: what it says of itself, and whether it is the one of these settings."""

import asyncio
import ssl
from typing import Final

from rgd.adapters.http.client import DaemonClient, DaemonRefused, DaemonUnreachable
from rgd.app.doctor.findings import Report, Seen
from rgd.config.settings import Settings
from rgd.config.values import split_address

#: Longest time that a daemon is waited for.
DAEMON_S: Final = 1.5
#: Where a daemon that listens on all addresses is asked.
_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 -- whom it is compared with


def url_of(settings: Settings) -> str:
    """Where a daemon of these settings is asked: without certificates, if it listens in such a way."""
    http = settings.http
    if http.unix_socket is not None:
        return f"unix://{http.unix_socket.absolute()}"
    is_secured = http.tls_cert is not None and http.probe_listen is None
    address = http.listen if http.tls_cert is None else http.probe_listen or http.listen
    host, port = split_address(address)
    host = _ANY.get(host, host)
    return f"http{'s' if is_secured else ''}://{f'[{host}]' if ':' in host else host}:{port}"


def own_trust(settings: Settings) -> ssl.SSLContext | None:
    """Trusts the daemon's own certificate, by whatever name: it is asked on its own machine."""
    if settings.http.tls_cert is None:
        return None
    try:
        context = ssl.create_default_context(cafile=settings.http.tls_cert)
    except OSError:
        return None  # `certificates` says what is wrong with it
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def named_as(settings: Settings, seen: Seen | str) -> Settings:
    """The settings; where they leave the broker's name to its default, with the name of the daemon that runs."""
    name = None if isinstance(seen, str) else seen.name
    if name is None or "name" in settings.broker.model_fields_set:
        return settings
    return settings.model_copy(update={"broker": settings.broker.model_copy(update={"name": name})})


async def look(client: DaemonClient) -> Seen:
    """Ask a daemon what it says of itself.

    Raises:
        DaemonUnreachable, DaemonRefused: none answers, or something else does.
    """
    try:
        async with asyncio.timeout(DAEMON_S):
            readiness = await client.readiness()
    except TimeoutError as error:
        raise DaemonUnreachable(f"no answer within {DAEMON_S:g} s") from error
    try:
        async with asyncio.timeout(DAEMON_S):
            return Seen(readiness, await client.brokers())
    except (DaemonRefused, DaemonUnreachable, TimeoutError):
        return Seen(readiness, None)


async def daemon(report: Report, settings: Settings) -> None:
    """Judge a daemon that runs."""
    seen = report.seen
    if isinstance(seen, str):
        report.ok(f"none runs: {seen}")
        return
    if seen.name is not None and seen.name != settings.broker.name:
        report.fault(
            f"the daemon that answers is of broker {seen.name}, and these settings are of broker "
            f"{settings.broker.name}; give that daemon's settings, or another http.listen"
        )
    for note in seen.readiness.get("degraded", ()):
        report.warning(f"degraded: {note} (docs/operations.md)")
    if seen.readiness["ready"]:
        report.ok("it runs and is ready")
    else:
        report.fault(
            f"it runs and is not ready: {seen.readiness['reason']} (docs/operations.md has the remedies)"
        )
    if seen.brokers is None:
        report.warning(
            "it does not show its peers there, or not in time; give a token of scope read with --token-file, or --url and --tls-ca"
        )
        return
    names = ", ".join(f"{one['broker']} ({one['age_s']:.1f} s)" for one in seen.brokers)
    expected = settings.exchange.expected_brokers
    if len(seen.brokers) < expected:
        report.warning(
            f"it knows {len(seen.brokers)} of {expected} brokers (exchange.expected_brokers): {names}; "
            "look after those that are missing"
        )
    else:
        report.ok(f"brokers, and when each was last heard: {names}")
