"""The bytes of a segment by offset: small reads near one another share a request."""

from collections.abc import Callable
from functools import lru_cache
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
        # Of these two alone, so that the blocks go with the last that refers to this.
        self._block = lru_cache(BLOCKS_MAX)(
            lambda number: fetch(
                number * BLOCK_BYTES, min(BLOCK_BYTES, size - number * BLOCK_BYTES)
            )
        )

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


#: A segment that is gone.
NO_BYTES: Final = Ranges(lambda _offset, _size: b"", 0)
