"""All checks for given settings."""

from functools import partial

from rgd.app.clock import SystemClock
from rgd.app.doctor import exchange, files, machine, running, storage
from rgd.app.doctor.findings import Finding, Look, blocking, run_all
from rgd.config.settings import Settings


async def examine(settings: Settings, seen: running.Seen | str, *, reports: bool) -> list[Finding]:
    """Look at everything that a daemon needs.

    Args:
        settings: the daemon's.
        seen: what the daemon that runs said; why there is none.
        reports: look also at what `rgd report` needs.
    """
    settings = running.named_as(settings, seen)
    clock = SystemClock()
    is_running = isinstance(seen, running.Seen)
    now_s = clock.unix_ms() / 1000
    looks: list[tuple[str, Look]] = [
        ("python", blocking(machine.python)),
        ("daemon", partial(running.daemon, settings=settings, seen=seen)),
        ("ports", partial(machine.ports, settings=settings, is_running=is_running)),
        ("open files", blocking(partial(machine.open_files, settings=settings))),
        ("disk", blocking(partial(machine.disk, settings=settings, is_running=is_running))),
        ("tokens", blocking(partial(files.tokens, settings=settings))),
        ("certificates", blocking(partial(files.certificates, settings=settings, now_s=now_s))),
        ("groups", blocking(partial(files.groups, settings=settings))),
        (
            "exchange",
            partial(exchange.exchange, settings=settings, clock=clock, is_running=is_running),
        ),
        ("admin API", partial(exchange.admin, settings=settings, clock=clock)),
        ("tier", blocking(partial(storage.tier, settings=settings))),
    ]
    if reports:
        looks.append(("java", blocking(machine.java)))
    return await run_all(looks)
