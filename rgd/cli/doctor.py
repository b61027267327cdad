"""`rgd doctor`: whether a daemon can run here, and what is wrong with one that runs.

Law: exit code 0 means that nothing is at fault, warnings apart; 1 that something is. Each fault says what to do. It ends in
some seconds, whatever hangs. `rgd.app.doctor` has the checks.
"""

# ruff: noqa: PLC0415 -- commands import what does the work themselves, so that --help stays fast

import json
import logging
from collections import Counter
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from rgd.cli.asking import DEFAULT_URL, Door, asks
from rgd.cli.setup import Setup, set_up
from rgd.errors import ConfigError, RgdError
from rgd.text import printable

if TYPE_CHECKING:
    from rgd.app.doctor.findings import Finding, Seen


@set_up
@asks
def doctor(
    *,
    report: Annotated[
        bool, typer.Option("--report", help="Also check what `rgd report` needs: Java and Spark.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="All findings, as JSON.")] = False,
    setup: Setup,
    door: Door,
) -> None:
    """Check what a daemon needs, and one that runs. The exit code is 1 if something is at fault."""
    from rgd.app.doctor.findings import State

    # The Pulsar client logs what the findings say.
    logging.disable(logging.CRITICAL)
    try:
        findings = _findings(setup, door, reports=report)
    finally:
        logging.disable(logging.NOTSET)
    count = Counter(finding.state for finding in findings)
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings]))
    else:
        for one in findings:
            print(printable(f"{one.state:<7}  {one.check:<12}  {one.text}"))
        totals = (
            f"{count[one]} {one}{'' if count[one] == 1 else 's'}"
            for one in (State.FAULT, State.WARNING)
        )
        print(", ".join(totals))
    if count[State.FAULT]:
        raise typer.Exit(1)


def _findings(setup: Setup, door: Door, *, reports: bool) -> "list[Finding]":
    import asyncio

    from rgd.app.doctor.findings import Finding, State
    from rgd.app.doctor.running import look, own_trust, url_of
    from rgd.app.doctor.whole import examine

    try:
        settings = setup.load()
    except ConfigError as error:
        return [Finding("settings", State.FAULT, str(fault)) for fault in error.faults]
    is_named = door.url != DEFAULT_URL
    trust = None
    if not is_named:
        door, trust = replace(door, url=url_of(settings)), own_trust(settings)
    try:
        seen: Seen | str = door.ask(look, trust)
    except ConfigError:
        raise
    except RgdError as error:
        seen = str(error)
    findings = asyncio.run(examine(settings, seen, reports=reports))
    if is_named and isinstance(seen, str):
        silent = Finding("daemon", State.FAULT, seen)
        return [silent if one.check == silent.check else one for one in findings]
    return findings
