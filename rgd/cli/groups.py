"""`rgd groups`: resource groups and their attachments, from a shell.

Laws: `set` changes the fields of its options and keeps the rest, in one call that the daemon merges at
the write, so two shells that change different fields never undo each other. A rate of 0 is a usage
error. `--json` prints the daemon's answer.

The shares are this daemon's own view. `rgd.adapters.http.client` makes the calls.
"""

# ruff: noqa: PLR0913 -- a command's parameters are its options

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from rgd.cli.amounts import EXPECTED, parse_rate
from rgd.cli.asking import SOURCE, AsJson, Door, asks
from rgd.cli.names import check_group, places_of
from rgd.cli.table import print_columns
from rgd.core.policies.model import SharePolicyName, TopicSplit
from rgd.core.units import Dimension, Kind
from rgd.errors import ConfigError, Fault
from rgd.text import printable, show

if TYPE_CHECKING:
    from rgd.adapters.http.client import DaemonClient

#: The value that selects the daemon's own default.
DEFAULT: Final = "default"

_FORMS: Final = "TENANT, TENANT/NAMESPACE or TENANT/NAMESPACE/TOPIC"

app = typer.Typer(help="See and change resource groups on a running daemon.", no_args_is_help=True)

Group = Annotated[str, typer.Argument(metavar="GROUP", help="The group's name.")]
Names = Annotated[
    list[str],
    typer.Argument(metavar="NAME...", help=f"Each a {_FORMS}; a topic may be persistent://..."),
]
_RATE_HELP: Final = "{} of all brokers together, a second: 500, 5M, 1Gi, or `unlimited`."


@app.command("list")
@asks
def list_groups(*, door: Door, as_json: AsJson = False) -> None:
    """Show every group: quota, this daemon's share, state."""
    door.show(lambda client: client.groups(), _print_groups, as_json=as_json)


@app.command("get")
@asks
def get(group: Group, *, door: Door, as_json: AsJson = False) -> None:
    """Show one group: its fields, its attachments, every broker's part."""
    check_group(group)
    door.show(lambda client: client.group(group), _print_group, as_json=as_json)


_Soft = Annotated[
    float | None,
    typer.Option(
        metavar="PART",
        min=0.0,
        max=1.0,
        help="The part of a share beyond which callers are told, 0.8 for example; 0 is none.",
    ),
]
_Split = Annotated[
    str | None,
    typer.Option(
        metavar="S",
        help=f"How a broker divides its share over topics: {', '.join([*TopicSplit, DEFAULT])}.",
    ),
]


@app.command("set")
@asks
def set_group(
    group: Group,
    *,
    publish_messages: Annotated[
        str | None, typer.Option(metavar="N", help=_RATE_HELP.format("Messages published"))
    ] = None,
    publish_bytes: Annotated[
        str | None, typer.Option(metavar="N", help=_RATE_HELP.format("Bytes published"))
    ] = None,
    dispatch_messages: Annotated[
        str | None, typer.Option(metavar="N", help=_RATE_HELP.format("Messages dispatched"))
    ] = None,
    dispatch_bytes: Annotated[
        str | None, typer.Option(metavar="N", help=_RATE_HELP.format("Bytes dispatched"))
    ] = None,
    blocked: Annotated[
        bool | None, typer.Option("--blocked/--no-blocked", help="Let nothing pass.")
    ] = None,
    shadow: Annotated[
        bool | None,
        typer.Option("--shadow/--no-shadow", help="Count what would be refused, refuse nothing."),
    ] = None,
    soft: _Soft = None,
    policy: Annotated[
        str | None,
        typer.Option(metavar="P", help=f"Share policy: {', '.join([*SharePolicyName, DEFAULT])}."),
    ] = None,
    topic_split: _Split = None,
    door: Door,
    as_json: AsJson = False,
) -> None:
    """Change the fields in the options and keep the rest; create the group if it is missing."""
    check_group(group)
    patch = _patch(
        {
            (Kind.PUBLISH, Dimension.MESSAGES): publish_messages,
            (Kind.PUBLISH, Dimension.BYTES): publish_bytes,
            (Kind.DISPATCH, Dimension.MESSAGES): dispatch_messages,
            (Kind.DISPATCH, Dimension.BYTES): dispatch_bytes,
        },
        {"policy": (policy, SharePolicyName), "topic_split": (topic_split, TopicSplit)},
    )
    if blocked is not None:
        patch["blocked"] = blocked
    if shadow is not None:
        patch["shadow"] = shadow
    if soft is not None:
        patch["soft"] = soft or None
    door.show(lambda client: client.patch_group(group, patch), _print_group, as_json=as_json)


@app.command("delete")
@asks
def delete(
    groups: Annotated[list[str], typer.Argument(metavar="GROUP...", help="The groups' names.")],
    *,
    door: Door,
) -> None:
    """Delete groups without attachments."""
    for group in groups:
        check_group(group)
    _each(door, groups, lambda client, group: client.delete_group(group), "deleted")


@app.command("attach")
@asks
def attach(group: Group, names: Names, *, door: Door) -> None:
    """Attach tenants, namespaces and topics to a group, in place of their previous groups."""
    check_group(group)
    told = f"attached to {group}"
    _each(door, places_of(names), lambda client, place: client.attach(place, group), told)


@app.command("detach")
@asks
def detach(names: Names, *, door: Door) -> None:
    """Detach tenants, namespaces and topics from their groups."""
    _each(door, places_of(names), lambda client, place: client.detach(place), "detached")


def _each(
    door: Door,
    names: Sequence[str],
    call: Callable[["DaemonClient", str], Awaitable[None]],
    told: str,
) -> None:
    """Make a call for each name, in order, and say of each that it is done."""

    async def call_all(client: "DaemonClient") -> None:
        for name in names:
            await call(client, name)
            print(f"{name}: {told}")

    door.ask(call_all)


def _patch(
    rates: Mapping[tuple[Kind, Dimension], str | None],
    choices: Mapping[str, tuple[str | None, type[StrEnum]]],
) -> dict[str, object]:
    """The body of `PATCH /v1/groups/{g}`: only the given fields.

    Raises:
        ConfigError: every option that is malformed.
    """
    faults: list[Fault] = []
    patch: dict[str, Any] = {}
    for (kind, dimension), text in rates.items():
        if text is None:
            continue
        try:
            patch.setdefault(kind.value, {})[dimension.value] = parse_rate(text)
        except ValueError:
            remedy = "; --blocked lets nothing pass" if text.strip().strip("0.") == "" else ""
            expected = f"expected {EXPECTED}, got {text!r}{remedy}"
            faults.append(Fault(SOURCE, f"--{kind}-{dimension}", expected))
    for name, (choice, known) in choices.items():
        if choice is None:
            continue
        try:
            patch[name] = None if choice == DEFAULT else known(choice)
        except ValueError:
            names = ", ".join([*known, DEFAULT])
            flag = f"--{name.replace('_', '-')}"
            faults.append(Fault(SOURCE, flag, f"expected one of {names}, got {choice!r}"))
    if faults:
        raise ConfigError(*faults)
    return patch


def _print_groups(views: Sequence[Mapping[str, Any]]) -> None:
    if not views:
        print("no groups; make one with `rgd groups set NAME --publish-messages 1000`")
        return
    columns = ["group", "kind", "messages/s", "share here", "bytes/s", "share here", "state"]
    rows = [row for view in views for row in _kind_rows(view)]
    print_columns([*columns, "notes"], rows, text_columns=2)


def _kind_rows(view: Mapping[str, Any]) -> Iterator[list[str]]:
    """A row for each kind that is limited; one for a group that limits nothing."""
    limited = [kind for kind in Kind if view["blocked"] or any(view[kind]["quota"].values())]
    for kind in limited or [Kind.PUBLISH]:
        rates = view[kind]
        yield [
            view["group"],
            kind.value if limited else "any",
            *_quota_and_share(rates, Dimension.MESSAGES),
            *_quota_and_share(rates, Dimension.BYTES),
            view["state"],
            _notes(view) or "-",
        ]


def _quota_and_share(rates: Mapping[str, Any], dimension: Dimension) -> tuple[str, str]:
    is_bytes = dimension is Dimension.BYTES
    return (
        show(rates["quota"][dimension], is_bytes=is_bytes, empty="unlimited"),
        show(rates["share"][dimension], is_bytes=is_bytes),
    )


def _flags(view: Mapping[str, Any]) -> list[str]:
    flags = [flag for flag in ("blocked", "shadow") if view[flag]]
    return flags if view["soft"] is None else [*flags, f"soft={view['soft']:g}"]


def _notes(view: Mapping[str, Any]) -> str:
    """The special states of a group."""
    notes = _flags(view)
    if view["policy"] != SharePolicyName.MAX_MIN:
        notes.append(f"policy={view['policy']}")
    if view["topic_split"] != TopicSplit.SHARED:
        notes.append(f"topic_split={view['topic_split']}")
    return ",".join(notes)


def _print_group(view: Mapping[str, Any]) -> None:
    flags = _flags(view)
    print(
        printable(
            f"{view['group']}: {', '.join([*flags, view['state']])}; "
            f"policy {view['policy']}, topic split {view['topic_split']}"
        )
    )
    for what in ("tenants", "namespaces", "topics"):
        if view[what]:
            print(printable(f"  {what}: {', '.join(view[what])}"))
    counted = ("wanted", "admitted")
    columns = ["kind", "broker", "messages/s", *counted, "bytes/s", *counted]
    rows = [row for kind in Kind for row in _broker_rows(kind, view[kind])]
    print_columns(columns, rows, text_columns=2)


def _broker_rows(kind: Kind, rates: Mapping[str, Any]) -> Iterator[list[str]]:
    """The quota, and each live broker's part of it; idle brokers have no demand to show."""
    nothing: dict[str, None] = dict.fromkeys(Dimension)
    yield [kind.value, "(quota)", *_cells(rates["quota"], nothing, nothing, empty="unlimited")]
    for row in rates["rows"]:
        yield [kind.value, row["broker"], *_cells(row["share"], row["wanted"], row["admitted"])]
    for row in rates["idle"]:
        yield [kind.value, row["broker"], *_cells(row["share"], nothing, nothing)]


def _cells(*columns: Mapping[str, float | None], empty: str = "-") -> Iterator[str]:
    """Rate, wanted and admitted in messages, then in bytes."""
    for dimension in Dimension:
        for place, column in enumerate(columns):
            is_bytes = dimension is Dimension.BYTES
            yield show(column[dimension], is_bytes=is_bytes, empty=empty if not place else "-")
