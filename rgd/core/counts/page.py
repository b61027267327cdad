"""Pages of readings: what the gate packs of counters when the plane asks for them.

Every number of a row is cumulative, so a page that repeats another changes nothing: counts since the start never
fall, but for refused work that was settled after the fact. Three belong to the open window of the row, `topics`,
`held` and the slices of unsaid refusals, and begin anew with `News.open_windows`.

A page has three parts, because most rows have only been granted work, and most others only refused some besides:
numbers of every row, of those that refused work or saw retries, and of those that had anything else. All are
doubles: the columns that they become are exact up to 2**53, which is a hundred days of ns, and lose precision beyond.
"""

from collections.abc import Collection, Iterable
from struct import Struct
from typing import Final, NamedTuple, Protocol

from rgd.core.counts.counters import Counters
from rgd.core.counts.unsaid import NO_SLICES

#: Numbers of every row: slot id, times of the last request and of the first since the row was collected, requests,
#: admitted messages and bytes, topics of the open window.
PLAIN: Final = 7
#: Of a row that refused work or saw retries: its slot id; retries, refusals, and pairs of messages and bytes:
#: retried (of the admitted), refused, refused as new, refused without an attempt; the last wait in ms.
REFUSING: Final = 12
#: Of a row that had anything else: its slot id; messages and bytes given back, held back in the open window, and in it
#: or the one before; `UnsaidBound.numbers`.
BESIDES: Final = 15

_PLAIN, _REFUSING, _BESIDES = (Struct(f"{count}d") for count in (PLAIN, REFUSING, BESIDES))


class Page(NamedTuple):
    """Readings of some rows, packed."""

    plain: bytes = b""
    refusing: bytes = b""
    besides: bytes = b""


#: A slot id, whether the row is idle, and its demand since the start in messages and bytes.
OpenedWindow = tuple[int, bool, int, int]


class Pages(Protocol):
    """Where pages come from (`rgd.core.counts.news.News`)."""

    def changed(self, slots: Iterable[int]) -> Page:
        """Those of these rows that changed since they were in a page; the touched ones stay touched."""

    def open_windows(self, rows: Iterable[OpenedWindow]) -> None:
        """Begin what belongs to a window again; where the row is idle, unsaid refusals are forgotten."""


class Ungoverned(NamedTuple):
    """Requests that were decided without a limit."""

    #: Granted because no limit applied, or no policies were known.
    granted: int
    unknown_granted: int
    unknown_refused: int


def pack(rows: Collection[Counters]) -> Page:
    """The present readings of some rows."""
    refusing = [one for one in rows if one.refusals or one.retries]
    besides = [one for one in rows if one.has_besides]
    return Page(_plain(rows), _refusing(refusing), b"".join(map(_of_besides, besides)))


def joined(pages: Iterable[Page]) -> Page:
    """The rows of all pages; a row may be in several, if requests came between them."""
    return Page(*map(b"".join, zip(Page(), *pages, strict=True)))


def _plain(rows: Collection[Counters]) -> bytes:
    pack = _PLAIN.pack
    packed = [
        pack(
            of.slot,
            of.at,
            of.touched_at,
            of.requests,
            of.messages,
            of.bytes,
            len(of.topics),
        )
        for of in rows
    ]
    return b"".join(packed)


def _refusing(rows: Collection[Counters]) -> bytes:
    pack = _REFUSING.pack
    packed = [
        pack(
            of.slot,
            of.retries,
            of.refusals,
            of.retried_messages,
            of.retried_bytes,
            of.refused_messages,
            of.refused_bytes,
            of.refused_new_messages,
            of.refused_new_bytes,
            of.unsaid_messages,
            of.unsaid_bytes,
            of.wait_ms,
        )
        for of in rows
    ]
    return b"".join(packed)


def _of_besides(of: Counters) -> bytes:
    slices = NO_SLICES if of.unsaid is None else of.unsaid.numbers()
    back = of.returned_messages, of.returned_bytes
    return _BESIDES.pack(of.slot, *back, *of.held_back(), *slices)
