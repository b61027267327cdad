"""The tables of the lake (`rgd.analysis.lake`): every column with its type and its meaning.

    python -m rgd.analysis.lake_schema docs/lake.md

Law: the tables of docs/lake.md are this module's output, and the files have these columns in this order.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from rgd.analysis.schema import PIECES, Columns

#: A table's columns in order: Spark type and meaning.
Described = Mapping[str, tuple[str, str]]

#: Written into rgd-lake.json and every file; another number is another lake.
LAKE_VERSION: Final = 2

_WHO: Final = {
    "broker": ("string", "whose record it is (`broker.name`)"),
    "incarnation": ("string", "one run of that daemon, 16 hexadecimal digits"),
    "sequence": ("bigint", "the round within the incarnation: 1, 2, 3 ..."),
}
_WHEN: Final = {
    "time": (
        "timestamp",
        "the entry's broker timestamp (PIP-70), UTC, as stamped; its `day` is the partition",
    )
}
_WHOSE: Final = {
    "group": ("string", "the resource group"),
    "kind": ("string", "`publish` or `dispatch`"),
}


def _of_both(name: str, kind: str, meaning: str) -> dict[str, tuple[str, str]]:
    """A column for messages and one for bytes; `{}` stands for these words."""
    return {name.format(of): (kind, meaning.format(of)) for of in ("messages", "bytes")}


#: What reports read, as `rgd.analysis.minutes` says; not for others, so that its columns may change.
MINUTES: Final = "minutes"

#: By name: what a row is, and the columns.
LAKE: Final[Mapping[str, tuple[str, Described]]] = MappingProxyType(
    {
        "usage": (
            "A group and kind in one round of one broker. Rounds in which nobody asked have no row.",
            _WHEN
            | _WHO
            | _WHOSE
            | {
                "period_ms": ("double", "length of the round"),
                "topics": ("bigint", "topics with work in the round"),
            }
            | _of_both("admitted_{}", "double", "{} admitted a second")
            | _of_both("wanted_{}", "double", "{} wanted a second")
            | _of_both("admitted_{}_total", "bigint", "{} admitted since the incarnation's start")
            | _of_both("wanted_{}_total", "bigint", "{} wanted since the incarnation's start")
            | _of_both("refused_{}", "bigint", "{} refused in the round, retries too")
            | _of_both("share_{}", "double", "the broker's share, {} a second; null: unlimited")
            | _of_both("quota_{}", "double", "the group's quota, {} a second; null: unlimited")
            | {
                "policy": ("string", "the share policy"),
                "sent": ("boolean", "whether the row was sent to the peers in this round"),
            },
        ),
        "refused_by": (
            "A level that refused work of a group and kind in one round of one broker.",
            _WHEN
            | _WHO
            | _WHOSE
            | {
                "level": (
                    "string",
                    "`broker`, `resource_group`, `topic`, `subscription` or `backlog`",
                ),
                "messages": ("bigint", "messages that it refused in the round"),
                "bytes": ("bigint", "bytes that it refused in the round"),
            },
        ),
        "rounds": (
            "A record: one round of one broker, or a part of one that is too large for one entry.",
            _WHEN
            | _WHO
            | {
                "part": ("bigint", "1, 2 ... of `parts`"),
                "parts": ("bigint", "entries that the round is in"),
                "period_ms": ("double", "length of the round"),
                "clock_ms": ("bigint", "the daemon's wall clock, ms since 1970; may run backwards"),
                "local_ms": ("double", "its monotonic clock"),
                "isolated": ("boolean", "whether it had no contact with the exchange"),
                "weight": ("bigint", "the broker's weight in max-min, thousandths"),
                "last": ("boolean", "the closing record of an orderly stop"),
                "lost": (
                    "bigint",
                    "rounds and entries that the log had lost since the daemon's start",
                ),
                "ungoverned": ("bigint", "requests granted because no limit applied"),
                "unknown_granted": ("bigint", "requests granted because no policies were known"),
                "unknown_refused": ("bigint", "requests refused because no policies were known"),
                "policies_hash": ("string", "of the policies in force, 16 hexadecimal digits"),
                "peers": ("array<string>", "the brokers that it knew"),
                "peer_incarnations": ("array<bigint>", "the lower 32 bits of their incarnations"),
                "peer_sequences": (
                    "array<bigint>",
                    "the last round that it had received of each; 0: none",
                ),
                "rows": ("bigint", "rows of `usage`"),
                "index": ("bigint", "the entry's index in its log (PIP-70); null: it has none"),
            },
        ),
        "policies": (
            "A policy that came into force: all of them where a segment begins, later what changed.",
            _WHEN
            | {name: _WHO[name] for name in ("broker", "incarnation")}
            | {
                "policies_hash": ("string", "of all policies then in force"),
                "is_change": ("boolean", "whether it changes what was recorded before"),
                "key": ("string", "as in the policies table, `group:NAME` and so on"),
                "value": ("string", "JSON as in the policies table; null: deleted"),
            },
        ),
        "segments": (
            "A segment that was converted, and what is wrong with it. This table has no `day`.",
            {
                "segment": ("string", "where it was read"),
                "size": ("bigint", "its bytes then"),
                "records": ("bigint", "rounds"),
                "rows": ("bigint", "rows of `usage`"),
                "foreign": ("bigint", "entries of other producers"),
                "damaged": ("bigint", "stretches that cannot be read"),
                "damaged_bytes": ("bigint", "their bytes"),
                "damages": ("array<string>", "the first of them: offset and reason"),
                "torn_bytes": ("bigint", "bytes of an incomplete entry at the end"),
                "lost_entries": ("bigint", "entries that are missing, by their indexes"),
                "first_index": ("bigint", "of the first entry"),
                "last_index": ("bigint", "of the last entry"),
                "first_time": ("timestamp", "of the first record"),
                "last_time": ("timestamp", "of the last record"),
                "stats": (
                    "string",
                    "what reports know of it, JSON; not for others, so it may change",
                ),
            },
        ),
    }
)


def columns_of(table: str) -> Columns:
    """A table's columns with their Spark types."""
    return (
        PIECES if table == MINUTES else {name: kind for name, (kind, _) in LAKE[table][1].items()}
    )


def described() -> str:
    """The tables as docs/lake.md has them behind its own words."""
    parts = []
    for table, (row, columns) in LAKE.items():
        rows = (f"| `{name}` | {kind} | {text} |" for name, (kind, text) in columns.items())
        head = "| column | type | meaning |\n| --- | --- | --- |"
        parts.append("\n".join([f"## `{table}`\n\n{row}\n\n{head}", *rows]))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]):
        words, heading, _ = page.read_text(encoding="utf-8").partition("## `usage`")
        assert heading, f"{page} has no tables of the lake"
        page.write_text(words + described(), encoding="utf-8")
