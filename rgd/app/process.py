"""What each process of a daemon does around its work: the interpreter's settings, an end in time, foreseen errors."""

import asyncio
import atexit
import gc
import os
import secrets
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, Final, TypeVar

import structlog
import uvloop

from rgd.adapters.exchange.embedded import EmbeddedBroker
from rgd.config.credential_files import check_credential_files
from rgd.config.faults import Faults
from rgd.config.settings import Settings
from rgd.config.values import EMBEDDED
from rgd.errors import RgdError

_log = structlog.get_logger("rgd")

#: Which build of the version runs, as whoever built the image named it.
BUILD: Final = os.environ.get("RGD_BUILD", "")

#: Bits of an incarnation: it travels as a signed 64 bit number.
INCARNATION_BITS: Final = 62

#: How long a thread may keep the interpreter while requests wait (Python's default is 5 ms).
SWITCH_INTERVAL_S: Final = 0.0005

#: A collection of the oldest generation looks at every object there is, and 200,000 resolved names
#: keep requests waiting for 150 ms. Nearly all that lives long here is without cycles, so that one is
#: left to once in some hundred million new objects. The younger ones look at some 300 objects at most:
#: beside a plane on the same core, which keeps the caches for itself, 3,000 take up to 9 ms.
GC_THRESHOLDS: Final = (100, 2, 500_000)

_T = TypeVar("_T")


class Halted(RgdError):
    """The daemon may not go on: another one speaks for its name, or too much went wrong in it."""


def new_incarnation() -> int:
    """The number that tells this run of a daemon from all others."""
    return secrets.randbits(INCARNATION_BITS) or 1


def run_daemon(settings: Settings, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run one, once its credentials are found to be of use.

    Raises:
        ConfigError: they are not.
        RgdError, OSError: what somebody can do something about is one error, also where it came from among several tasks.
    """
    check_credential_files(settings, Faults("settings"))
    tune_interpreter()
    try:
        uvloop.run(main())
    except BaseExceptionGroup as group:
        raise foreseen(group) from group


def stop_signalled() -> asyncio.Event:
    """Set by SIGTERM and SIGINT."""
    until = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, until.set)
    return until


async def unless(until: asyncio.Event, work: Coroutine[Any, Any, _T]) -> _T | None:
    """What work gives; None where `until` is set first, which ends the work."""
    async with asyncio.TaskGroup() as tasks:
        working, ending = tasks.create_task(work), tasks.create_task(until.wait())
        ending.add_done_callback(lambda _: working.cancel())
        working.add_done_callback(lambda _: ending.cancel())
    return None if working.cancelled() else working.result()


def tune_interpreter() -> None:
    """Have threads and the collector of garbage keep requests, and the exit, waiting for less."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(*GC_THRESHOLDS)
    # The interpreter's own end looks at every object more than once: 3 s with 150,000 groups.
    atexit.register(gc.freeze)


def embedded_broker(settings: Settings) -> EmbeddedBroker | None:
    """The broker that this machine runs for the exchange; None: it is elsewhere."""
    if settings.exchange.url != EMBEDDED:
        return None
    return EmbeddedBroker(settings.exchange.embedded_dir.expanduser())


async def close_within(stack: AsyncExitStack, seconds: float) -> None:
    """Close everything; at most for so many seconds."""
    try:
        async with asyncio.timeout(seconds):
            await stack.aclose()
    except TimeoutError:
        _log.warning("gave up waiting for an orderly end", seconds=seconds)


def foreseen(group: BaseExceptionGroup) -> BaseException:
    """The first error of a group, if every one of it is foreseen; otherwise the group."""
    if group.split((RgdError, OSError))[1] is not None:
        return group
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
