"""What a check says, and how checks are run: side by side, each with its time limit."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rgd.app.call_threads import CallThread
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


class Report:
    """Takes what one check finds."""

    def __init__(self, check: str) -> None:
        self.check = check
        self.findings: list[Finding] = []

    def ok(self, text: str) -> None:
        self._add(State.OK, text)

    def warning(self, text: str) -> None:
        self._add(State.WARNING, text)

    def fault(self, text: str) -> None:
        self._add(State.FAULT, text)

    def refused(self, error: RgdError) -> None:
        """Note an error as one fault, or as several."""
        for one in error.faults if isinstance(error, ConfigError) else (error,):
            self.fault(str(one))

    def _add(self, state: State, text: str) -> None:
        self.findings.append(Finding(self.check, state, text))


#: Looks at one thing; an `RgdError` or `OSError` that it raises is a fault.
Look = Callable[[Report], Awaitable[None]]


def blocking(look: Callable[[Report], None]) -> Look:
    """A check that blocks, in a thread of its own, which is left behind if it hangs."""

    async def looked(report: Report) -> None:
        thread = CallThread(report.check, timeout_s=2 * CHECK_S, waiting_max=1)
        try:
            await thread.call(lambda: look(report))
        finally:
            thread.close()

    return looked


async def run_all(looks: Iterable[tuple[str, Look]]) -> list[Finding]:
    """The findings of all checks by name, in their order."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_run(check, look)) for check, look in looks]
    return [finding for task in tasks for finding in task.result()]


async def _run(check: str, look: Look) -> list[Finding]:
    report = Report(check)
    try:
        async with asyncio.timeout(CHECK_S):
            await look(report)
    except TimeoutError:
        report.fault(f"no answer within {CHECK_S:g} s: find what hangs, and try again")
    except RgdError as error:
        report.refused(error)
    except OSError as error:
        why = f"{error.filename or check}: {error.strerror or error}"
        report.fault(f"{why}; make it readable for this user, or name another one")
    # A copy: what hangs may go on in its thread.
    return [*report.findings]
