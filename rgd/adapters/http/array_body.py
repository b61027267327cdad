"""Takes an array of objects apart, however large it is, without holding up the event loop.

Laws:
- What comes out is what decoding the whole array at once would give: the questions in order, and raw
  where one of them is at fault; or a `BadBody` for all of them, before any of them is asked.
- One call of the decoder sees at most `PIECE_BYTES` of whole items, or one item of at most
  `OBJECT_BYTES_MAX`, because no other thread and no other caller runs during it.
- Reading stops at the first item beyond `http.batch_max`.

An array of at most `PIECE_BYTES` is decoded in one call. A larger one is first cut between its items:
by a pattern, as long as they are flat (every good one is), and by a parser that looks at no more than
`OBJECT_BYTES_MAX` where one is nested.
"""

import json
import re
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final, Generic, TypeVar

import msgspec

from rgd.adapters.http.errors import BadBody, BatchTooLarge
from rgd.adapters.http.shown import cut
from rgd.adapters.http.strict import (
    OBJECT_BYTES_MAX,
    UNREADABLE,
    has_each_name_once,
    may_repeat_a_name,
)
from rgd.adapters.http.turns import Turns

#: Bytes of whole items that are decoded in one call (some 0.5 ms).
PIECE_BYTES: Final = 16 << 10

#: Items that are cut from a large array in one go (some 0.5 ms).
PIECE_ITEMS: Final = 512

_Item = TypeVar("_Item", bound=msgspec.Struct)


class _Skipped(msgspec.Struct, gc=False):
    """Any object, its members ignored: counts objects without keeping them."""


_decode_raw = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_skipped = msgspec.json.Decoder(list[_Skipped]).decode
_decode_members = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode

#: An object whose values are no objects and no arrays. Possessive: it never tries twice.
_FLAT: Final = re.compile(rb'\{[^][{}"]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^][{}"]*+)*+\}', re.DOTALL)
_BEFORE: Final = re.compile(rb"[ \t\r\n]*+\[[ \t\r\n]*+")
_WHITESPACE: Final = b" \t\r\n"
_AFTER_ITEM: Final = re.compile(rb"[ \t\r\n]*+([],])[ \t\r\n]*+")

#: Finds the end of a nested item. Numbers are not read, so that a thousand digits cost nothing.
_parse = json.JSONDecoder(
    parse_int=len, parse_float=len, parse_constant=len, strict=False
).raw_decode


def is_array(body: bytes) -> bool:
    """Whether a body begins as an array, as far as an object may be long."""
    first = body[:1]
    if first not in {b"{", b"["}:
        first = body[:OBJECT_BYTES_MAX].lstrip(_WHITESPACE)[:1]
    return first == b"["


def is_long(body: bytes) -> bool:
    """Whether an array is more than one piece."""
    return len(body) > PIECE_BYTES


def place_for(body: bytes, turns: Turns) -> AbstractAsyncContextManager[object]:
    """What an array is answered within: one of more than one piece has its place among the long work."""
    return turns.long_work if is_long(body) else nullcontext()


class ArrayReader(Generic[_Item]):
    """Reads arrays of one type of object.

    Args:
        item_type: the type. What its fields say when they are absent is not encoded (UNSET).
    """

    def __init__(self, item_type: type[_Item]) -> None:
        self._decode_many = msgspec.json.Decoder(list[item_type]).decode  # type: ignore[valid-type]

    async def read(self, body: bytes, batch_max: int, turns: Turns) -> list[_Item | msgspec.Raw]:
        """The questions of an array; raw where at least one of its piece is at fault.

        Raises:
            BadBody: it is not an array of objects.
            BatchTooLarge: there are more than `batch_max`.
        """
        if not is_long(body):
            return self.decoded(body, batch_max)
        items: list[_Item | msgspec.Raw] = []
        for piece in self._pieces(body):
            items += piece
            if len(items) > batch_max:
                raise BatchTooLarge(batch_max)
            await turns.next()
        return items

    def decoded(self, array: bytes, batch_max: int) -> list[_Item | msgspec.Raw]:
        """The questions of a small array, of at most `PIECE_BYTES`.

        Raises:
            BadBody, BatchTooLarge: as `read`.
        """
        # Counted before they are kept, if there may be so many: an item takes three bytes, its comma included.
        if (
            len(array) > 3 * batch_max
            and array.count(b"{") > batch_max
            and _count(array) > batch_max
        ):
            raise BatchTooLarge(batch_max)
        return self._good_items_of(array) or [*_raw_items_of(array)]

    def _good_items_of(self, array: bytes) -> list[_Item | msgspec.Raw] | None:
        """The questions, if none of them is at fault."""
        try:
            questions: list[_Item | msgspec.Raw] = [*self._decode_many(array)]
            if has_each_name_once(array, questions):
                return questions
            names = sum(map(len, _decode_members(array)))
        except UNREADABLE:
            return None
        return None if may_repeat_a_name(array, names) else questions

    def _pieces(self, body: bytes) -> Iterator[list[_Item | msgspec.Raw]]:
        """The questions of a large array, a stretch of them at a time.

        Raises:
            BadBody: it is not an array of objects, or one of them is too large.
        """
        before = _BEFORE.match(body, 0, OBJECT_BYTES_MAX)
        if before is None:
            raise BadBody(_TOO_MUCH_SPACE)
        begin = before.end()
        is_last = body.startswith(b"]", begin)
        if is_last:
            begin += 1
        while not is_last:
            items, end = self._good_piece(body, begin) or self._careful_piece(body, begin)
            yield items
            is_last, begin = _after_item(body, end)
        _check_nothing_after(body, begin)

    def _good_piece(self, body: bytes, begin: int) -> tuple[list[_Item | msgspec.Raw], int] | None:
        """The questions up to the last brace of a piece, and its end; None where it is not that simple.

        A stretch that is whole objects with commas in between ends between two items: inside a string or an
        object it could not be decoded.
        """
        if body.count(b"{", begin, begin + PIECE_BYTES) > PIECE_ITEMS:
            return None
        end = body.rfind(b"}", begin, begin + PIECE_BYTES) + 1
        items = self._good_items_of(b"[%b]" % body[begin:end]) if end else None
        return None if not items else (items, end)

    def _careful_piece(self, body: bytes, begin: int) -> tuple[list[_Item | msgspec.Raw], int]:
        """The items of a piece, cut one by one, and its end."""
        end = _end_of_item(body, begin)
        for _ in range(PIECE_ITEMS - 1):
            is_last, following = _after_item(body, end)
            if is_last or end - begin >= PIECE_BYTES:
                break
            end = _end_of_item(body, following)
        array = b"[%b]" % body[begin:end]
        return self._good_items_of(array) or [*_raw_items_of(array)], end


def _count(array: bytes) -> int:
    try:
        return len(_decode_skipped(array))
    except UNREADABLE:
        return 0


def _raw_items_of(array: bytes) -> list[msgspec.Raw]:
    try:
        _decode_skipped(array)
        return _decode_raw(array)
    except RecursionError:
        raise BadBody("body: expected an array of objects, got one nested too deeply") from None
    except msgspec.ValidationError as exc:
        raise BadBody(f"body: expected an array of objects: {cut(str(exc))}") from None
    except ValueError as exc:
        raise BadBody(f"body: expected JSON in UTF-8: {cut(str(exc))}") from None


def _after_item(body: bytes, end: int) -> tuple[bool, int]:
    """Whether the item that ends here is the last one, and where what comes after it begins."""
    after = _AFTER_ITEM.match(body, end, end + OBJECT_BYTES_MAX)
    if after is None:
        raise BadBody(f"{_EXPECTED}, got other bytes after one (byte {end})")
    return after[1] == b"]", after.end()


_EXPECTED: Final = "body: expected an array of objects"
_TOO_MUCH_SPACE: Final = (
    f"{_EXPECTED} with less than {OBJECT_BYTES_MAX} bytes of white space in one place"
)


def _end_of_item(body: bytes, begin: int) -> int:
    if not body.startswith(b"{", begin):
        raise BadBody(f"{_EXPECTED}, got another item (byte {begin})")
    flat = _FLAT.match(body, begin, begin + OBJECT_BYTES_MAX)
    if flat is not None:
        return flat.end()
    # One byte is one character of this text, so that places in it are places in the body.
    window = body[begin : begin + OBJECT_BYTES_MAX].decode("latin-1")
    try:
        _, length = _parse(window)
    except RecursionError:
        raise BadBody(f"{_EXPECTED}, got one nested too deeply") from None
    except ValueError:
        if begin + OBJECT_BYTES_MAX < len(body):
            raise BadBody(
                f"{_EXPECTED} of at most {OBJECT_BYTES_MAX} bytes each, got another item "
                f"(byte {begin})"
            ) from None
        raise BadBody("body: expected JSON in UTF-8, got an item without its end") from None
    return begin + length


def _check_nothing_after(body: bytes, end: int) -> None:
    if len(body) - end > OBJECT_BYTES_MAX:
        raise BadBody(_TOO_MUCH_SPACE)
    if body[end:].strip(b" \t\r\n"):
        raise BadBody(f"{_EXPECTED}, got other bytes after it (byte {end})")
