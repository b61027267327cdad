"""The bytes of a segment by offset: small reads near one another share a request."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

#: Bytes that are fetched at once where headers are read, and blocks kept.
BLOCK_BYTES: Final = 16 << 10
BLOCKS_MAX: Final = 4

#: At most `size` bytes from `offset` on: `fetch(offset, size)`.
Fetch = Callable[[int, int], bytes]


class Ranges:
    """A segment that is fetched by ranges."""

    def __init__(self, fetch: Fetch, size: int) -> None:
        self._fetch = fetch
        self._size = size
        self._blocks: OrderedDict[int, bytes] = OrderedDict()

    def size(self) -> int:
        """All of its bytes."""
        return self._size

    def read(self, size: int, offset: int) -> bytes:
        """At most `size` bytes from `offset` on; fewer where the segment ends."""
        size = min(size, self._size - offset)
        if size <= 0:
            return b""
        if size > BLOCK_BYTES:
            return self._fetch(offset, size)
        first, last = offset // BLOCK_BYTES, (offset + size - 1) // BLOCK_BYTES
        data = b"".join(self._block(number) for number in range(first, last + 1))
        start = offset - first * BLOCK_BYTES
        return data[start : start + size]

    def _block(self, number: int) -> bytes:
        block = self._blocks.get(number)
        if block is None:
            start = number * BLOCK_BYTES
            block = self._fetch(start, min(BLOCK_BYTES, self._size - start))
            self._blocks[number] = block
            while len(self._blocks) > BLOCKS_MAX:
                self._blocks.popitem(last=False)
        else:
            self._blocks.move_to_end(number)
        return block
