"""Pages of lists: `limit`, `after` and `prefix`, and where the next page is.

Laws: a list is in the order of its names (by code points), so a page begins after a name and no page
repeats or skips what was there all the time. A page has the entries of at most `limit` names and, where they are large,
ends earlier; the header `Link` with `rel="next"` (RFC 8288) says that there is more, and where. What changes while
a page is put together shows in the entries that are still to come.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Final
from urllib.parse import quote

from msgspec import UNSET, Meta, Struct, UnsetType

from rgd.adapters.http.endpoint import ResponseSpec
from rgd.adapters.http.reply import NO_HEADERS, Call, Reply, array_of, encode, json_reply
from rgd.adapters.http.strict import QueryReader

#: Entries of a page where the caller says nothing, and the most that it may ask for.
LIMIT_DEFAULT: Final = 100
LIMIT_MAX: Final = 1000

#: Bytes of a page after which it ends, however few entries it has.
PAGE_BYTES: Final = 1 << 20

_LIMIT: Final = f"an integer from 1 to {LIMIT_MAX}"
ALimit = Annotated[
    int, Meta(ge=1, le=LIMIT_MAX, title="Most entries of the page.", description=_LIMIT)
]


class Page(Struct, frozen=True, forbid_unknown_fields=True):
    """Which part of a list is asked for."""

    limit: ALimit | UnsetType = LIMIT_DEFAULT
    after: Annotated[str, Meta(title="Only names after this one.")] = ""
    prefix: Annotated[str, Meta(title="Only names that begin so.")] = ""

    def has(self, name: str) -> bool:
        """Whether a name may be on the page."""
        return name > self.after and name.startswith(self.prefix)

    def link_after(self, path: str, name: str) -> Mapping[str, str]:
        """The header that leads to the page after a name."""
        said = {"limit": str(self.limit or LIMIT_MAX), "after": name, "prefix": self.prefix}
        query = "&".join(f"{key}={quote(value, safe='')}" for key, value in said.items() if value)
        return {"Link": f'<{path}?{query}>; rel="next"'}


class WholePage(Page, frozen=True, forbid_unknown_fields=True):
    """The same of lists that are whole without `limit`, as Pulsar's."""

    limit: ALimit | UnsetType = UNSET


#: Reads the page that a query asks for.
page_of: Final = QueryReader(Page).read
_whole_page = QueryReader(WholePage)


def a_page(entries: type) -> ResponseSpec:
    """A page as an answer."""
    return ResponseSpec(entries, headers_if_any=("Link",))


def page_names(names: Iterable[str], page: Page) -> tuple[list[str], bool]:
    """The names of a page in their order, and whether there are more after them.

    Args:
        names: of the whole list, in any order, perhaps repeatedly.
        page: which of them.
    """
    found = sorted(set(filter(page.has, names)))
    if page.limit is UNSET:
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
    page = page_of(call.query)
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
    # Unknown and repeated parameters are passed over, as in Pulsar.
    known = {name: call.query[name] for name in _whole_page.hints if name in call.query}
    page = _whole_page.read(known)
    found, has_more = page_names(names, page)
    headers = page.link_after(call.raw_path, found[-1]) if has_more else NO_HEADERS
    return json_reply(found, headers=headers)
