"""`rgd validate`: every fault of settings and groups files, without starting anything.

A file's top-level keys determine its kind. All files are read before any error is reported, so one
run shows all errors, each with file, line and key (`groups.yaml:12: groups.gold.blocked: ...`,
which editors accept as a link). A daemon's further sources (environment, options) are left out: a file is
checked on top of the defaults.
"""

# ruff: noqa: PLC0415 -- commands import what does the work themselves, so that --help stays fast

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rgd.errors import ConfigError, Fault
from rgd.text import printable

if TYPE_CHECKING:
    from rgd.config.document import Document
    from rgd.core.policies.snapshot import PolicySnapshot


def validate(
    *,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Settings or groups files.")
    ],
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="As for `rgd serve`: listening without tokens is fine."),
    ] = False,
    elsewhere: Annotated[
        bool,
        typer.Option(
            "--elsewhere",
            help="The tokens, keys and certificates that the settings name are on another machine.",
        ),
    ] = False,
) -> None:
    """Check settings and groups files. Every fault is listed; the exit code is then 2."""
    faults: list[Fault] = []
    for file in files:
        try:
            found = _check(file, insecure=insecure, elsewhere=elsewhere)
        except ConfigError as error:
            faults.extend(error.faults)
        else:
            print(printable(f"{file}: ok ({found})"))
    if faults:
        raise ConfigError(*faults)


def _check(file: Path, *, insecure: bool, elsewhere: bool) -> str:
    """A summary of a valid file."""
    from rgd.config import groups, load
    from rgd.config.credential_files import check_credential_files
    from rgd.config.document import read_document

    document = read_document(file)
    if _is_groups_file(document):
        snapshot = groups.snapshot_of(document)
        document.faults.raise_if_any()
        return _holds(snapshot)
    settings = load.settings_of(document, insecure=insecure)
    if not elsewhere:
        check_credential_files(settings, document.faults)
    return "process settings"


def _holds(snapshot: "PolicySnapshot") -> str:
    """A summary of a policy snapshot."""
    from rgd.core.policies.records import values_of

    found = Counter(key.partition(":")[0] for key, _ in values_of(snapshot))
    attached = found["tenant"] + found["namespace"] + found["topic"]
    limits = f"{found['limit']} limits, {found['backlog']} backlog quotas"
    return f"{found['group']} groups, {attached} attachments, {limits}"


def _is_groups_file(document: "Document") -> bool:
    """Determine the kind by the keys; a file without a known key gets the faults of both.

    Raises:
        ConfigError: it is neither, or both.
    """
    from rgd.config import groups, load

    keys = set(document.value) if isinstance(document.value, dict) else set()
    for_groups, for_settings = keys & {*groups.TOP_KEYS}, keys & {*load.TOP_KEYS}
    if bool(for_groups) == bool(for_settings):
        document.faults.add(
            "",
            f"expected a groups file ({', '.join(groups.TOP_KEYS)}) or a settings file "
            f"({', '.join(load.TOP_KEYS)}), got {', '.join(sorted(keys)) or 'neither'}",
        )
        raise ConfigError(*document.faults.listed())
    return bool(for_groups)
