"""`rgd validate`: every fault of settings and groups files, without starting anything.

A file is told by its top-level keys. All files are read before anything is said to be wrong, so one
run shows all there is to mend. What a daemon would add (environment, options) is left out: a file is
judged on top of the defaults.
"""

# ruff: noqa: PLC0415 -- commands import what does the work themselves, so that --help stays fast

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rgd.errors import ConfigError, Fault

if TYPE_CHECKING:
    from rgd.config.document import Document


def validate(
    *,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Settings or groups files.")
    ],
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="As for `rgd serve`: listening without tokens is fine."),
    ] = False,
) -> None:
    """Check settings and groups files; exit 2 and every fault if there is one."""
    faults: list[Fault] = []
    for file in files:
        try:
            found = _check(file, insecure=insecure)
        except ConfigError as error:
            faults.extend(error.faults)
        else:
            print(f"{file}: ok ({found})")
    if faults:
        raise ConfigError(*faults)


def _check(file: Path, *, insecure: bool) -> str:
    """What a sound file holds, in words."""
    from rgd.config import groups, load
    from rgd.config.document import read_document

    document = read_document(file)
    if _is_groups_file(document):
        book = groups.book_of(document)
        document.faults.raise_if_any()
        attach, limits = book.attach, book.limits
        attached = len(attach.tenants) + len(attach.namespaces) + len(attach.topics)
        limited = len(limits.topics) + len(limits.subscriptions)
        return f"{len(book.groups)} groups, {attached} attachments, {limited} topic limits"
    load.settings_of(document, insecure=insecure)
    return "process settings"


def _is_groups_file(document: "Document") -> bool:
    """Tell by the keys; a file with none that is known gets the faults of both.

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
        raise ConfigError(*document.faults.told())
    return bool(for_groups)
