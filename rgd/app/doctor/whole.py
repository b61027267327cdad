"""All checks for given settings."""

from typing import Final

from rgd.app.doctor import exchange, files, machine, running, storage
from rgd.app.doctor.findings import Finding, Look, Seen, run_all
from rgd.config.settings import Settings

_LOOKS: Final[dict[str, Look]] = {
    "python": machine.python,
    "daemon": running.daemon,
    "ports": machine.ports,
    "open files": machine.open_files,
    "disk": machine.disk,
    "tokens": files.tokens,
    "certificates": files.certificates,
    "groups": files.groups,
    "exchange": exchange.exchange,
    "admin API": exchange.admin,
    "tier": storage.tier,
}


async def examine(settings: Settings, seen: Seen | str, *, reports: bool) -> list[Finding]:
    """Look at everything that a daemon needs.

    Args:
        settings: the daemon's.
        seen: what the daemon that runs said; why there is none.
        reports: look also at what `rgd report` needs.
    """
    looks = _LOOKS | {"java": machine.java} if reports else _LOOKS
    return await run_all(looks, running.named_as(settings, seen), seen)
