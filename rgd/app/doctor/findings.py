"""What a check says, and how checks are run: side by side, each with its time limit."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from inspect import iscoroutinefunction
from typing import Any, Final

from rgd.app.call_threads import CallThread
from rgd.config.settings import Settings
from rgd.errors import ConfigError, RgdError

#: Longest time of one check.
CHECK_S: Final = 4.0


class State(StrEnum):
    """How a thing is."""

    OK = "ok"
    #: It works less well than it should.
    WARNING = "warning"
    #: A daemon would not start, or not do what it is for.
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; a warning or fault says what to do."""

    check: str
    state: State
    text: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What a daemon that runs said."""

    #: The JSON of `/readyz` and of `/v1/brokers`; None: it did not let us read that.
    readiness: Mapping[str, Any]
    brokers: Sequence[Mapping[str, Any]] | None

    @property
    def name(self) -> str | None:
        """Whose daemon it is."""
        return next((one["broker"] for one in self.brokers or () if one["self"]), None)


class Report:
    """Takes what one check finds.

    Args:
        check: its name.
        seen: what the daemon that runs said; why there is none.
    """

    def __init__(self, check: str, seen: Seen | str) -> None:
        self.check = check
        self.seen = seen
        self.findings: list[Finding] = []

    @property
    def is_running(self) -> bool:
        """Whether there is a daemon."""
        return isinstance(self.seen, Seen)

    def ok(self, text: str) -> None:
        self.findings.append(Finding(self.check, State.OK, text))

    def warning(self, text: str) -> None:
        self.findings.append(Finding(self.check, State.WARNING, text))

    def fault(self, text: str) -> None:
        self.findings.append(Finding(self.check, State.FAULT, text))

    def refused(self, error: RgdError) -> None:
        """Note an error as one fault, or as several."""
        for one in error.faults if isinstance(error, ConfigError) else (error,):
            self.fault(str(one))


#: Looks at one thing; an `RgdError` or `OSError` that it raises is a fault. One that blocks is no coroutine.
Look = Callable[[Report, Settings], Awaitable[None] | None]


async def run_all(looks: Mapping[str, Look], settings: Settings, seen: Seen | str) -> list[Finding]:
    """The findings of all checks by name, in their order."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_run(Report(check, seen), look, settings))
            for check, look in looks.items()
        ]
    return [finding for task in tasks for finding in task.result()]


async def _run(report: Report, look: Look, settings: Settings) -> list[Finding]:
    # Left behind if it hangs.
    thread = CallThread(report.check, timeout_s=2 * CHECK_S, waiting_max=1)
    try:
        async with asyncio.timeout(CHECK_S):
            if iscoroutinefunction(look):
                await look(report, settings)
            else:
                await thread.call(lambda: look(report, settings))
    except TimeoutError:
        report.fault(f"no answer within {CHECK_S:g} s: find what hangs, and try again")
    except RgdError as error:
        report.refused(error)
    except OSError as error:
        why = f"{error.filename or report.check}: {error.strerror or error}"
        report.fault(f"{why}; make it readable for this user, or name another one")
    finally:
        thread.close()
    # A copy: what hangs may go on in its thread.
    return [*report.findings]
