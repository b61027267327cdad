"""Pages of lists: `limit`, `after` and `prefix`, and where the next page is.

Laws: a list is in the order of its names (by code points), so a page begins after a name and no page
repeats or skips what was there all the time. A page has at most `limit` entries and, where they are large,
ends earlier; the header `Link` with `rel="next"` (RFC 8288) says that there is more, and where. What changes while
a page is put together shows in the entries that are still to come.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

from rgd.adapters.http.endpoint import Query
from rgd.adapters.http.errors import BadBody
from rgd.adapters.http.reply import NO_HEADERS, Call, Reply, array_of, encode, json_reply
from rgd.adapters.http.shown import cut

#: Entries of a page where the caller says nothing, and the most that it may ask for.
LIMIT_DEFAULT: Final = 100
LIMIT_MAX: Final = 1000

#: Bytes of a page after which it ends, however few entries it has.
PAGE_BYTES: Final = 1 << 20

#: For people and for machines: what a list takes after the question mark.
PAGE_QUERY: Final = (
    Query(
        "limit",
        f"Most entries of the page; {LIMIT_DEFAULT} if it is not said.",
        {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT},
    ),
    Query("after", "Only names after this one.", {"type": "string"}),
    Query("prefix", "Only names that begin so.", {"type": "string"}),
)
#: The same for lists that are whole without `limit`, as Pulsar's.
WHOLE_QUERY: Final = (
    Query(
        "limit",
        "Most names of the page; all if it is not said.",
        {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX},
    ),
    *PAGE_QUERY[1:],
)

_NAMES: Final = frozenset(query.name for query in PAGE_QUERY)
_DIGITS_MAX: Final = len(str(LIMIT_MAX))


class Page(NamedTuple):
    """Which part of a list is asked for."""

    #: None: all of it.
    limit: int | None
    after: str = ""
    prefix: str = ""

    def has(self, name: str) -> bool:
        """Whether a name may be on the page."""
        return name > self.after and name.startswith(self.prefix)

    def link_after(self, path: str, name: str) -> Mapping[str, str]:
        """The header that leads to the page after a name."""
        said = {"limit": str(self.limit or LIMIT_MAX), "after": name, "prefix": self.prefix}
        query = "&".join(f"{key}={quote(value, safe='')}" for key, value in said.items() if value)
        return {"Link": f'<{path}?{query}>; rel="next"'}


def page_of(call: Call, *, is_strict: bool = True) -> Page:
    """The page that a call asks for.

    Args:
        call: its query is read.
        is_strict: as all of `/v1`: unknown and repeated parameters are at fault, and a page has a limit
            if none is said.

    Raises:
        BadBody: naming the parameter.
    """
    said: dict[str, str] = {}
    for name, value in call.query.items():
        if is_strict and name not in _NAMES:
            raise BadBody(f"{cut(name)}: unknown parameter; expected limit, after or prefix")
        if is_strict and name in said:
            raise BadBody(f"{name}: expected once")
        said.setdefault(name, value)
    limit = said.get("limit")
    return Page(
        (LIMIT_DEFAULT if is_strict else None) if limit is None else _limit(limit),
        said.get("after", ""),
        said.get("prefix", ""),
    )


def page_names(names: Iterable[str], page: Page) -> tuple[list[str], bool]:
    """The names of a page in their order, and whether there are more after them.

    Args:
        names: of the whole list, in any order, perhaps repeatedly.
        page: which of them.
    """
    found = sorted(set(filter(page.has, names)))
    if page.limit is None:
        return found, False
    return found[: page.limit], len(found) > page.limit


async def page_reply(
    call: Call,
    path: str,
    names: Iterable[str],
    entries: Callable[[Sequence[str]], Iterable[tuple[str, Iterable[object]]]],
) -> Reply:
    """A page whose entries are made one name after another; others are served between them.

    Args:
        call: says which page.
        path: of the list.
        names: of the whole list.
        entries: makes the entries of each of some names, lazily; a name that is gone has none.
    """
    page = page_of(call)
    found, has_more = page_names(names, page)
    written: list[bytes] = []
    last, size = page.after, 0
    for name, made in entries(found):
        if size > PAGE_BYTES:
            has_more = True
            break
        part = [*map(encode, made)]
        written += part
        last, size = name, size + sum(map(len, part))
        await asyncio.sleep(0)
    headers = page.link_after(path, last) if has_more else NO_HEADERS
    return Reply(200, array_of(written), headers)


def names_reply(call: Call, names: Iterable[str]) -> Reply:
    """A page of bare names; all of them where no limit is asked for."""
    page = page_of(call, is_strict=False)
    found, has_more = page_names(names, page)
    headers = page.link_after(call.raw_path, found[-1]) if has_more else NO_HEADERS
    return json_reply(found, headers=headers)


def _limit(said: str) -> int:
    is_number = said.isascii() and said.isdecimal() and len(said) <= _DIGITS_MAX
    limit = int(said) if is_number else 0
    if not 1 <= limit <= LIMIT_MAX:
        raise BadBody(f"limit: expected an integer from 1 to {LIMIT_MAX}, got {cut(said)}")
    return limit
