"""One zstd frame around a message's body, with a size limit that is checked before decompression.

Law: a frame is decompressed only if it declares its decompressed size, and this size is at most
a limit and at most `RATIO_MAX` times the frame. So the received bytes bound the work of reading,
which is known before it begins. A frame with a false size stops at its limit.

A writer never sends a frame that would be refused: data that compresses further is sent uncompressed.
"""

import sys
from collections.abc import Iterable
from typing import Final

from rgd.wire.errors import Malformed, Oversize, Reason, TornFrame
from rgd.wire.parts import check_size

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

#: A body may become so many times as large as its frame. Reports of different groups reach 5 to 10.
RATIO_MAX: Final = 64

#: The usage log's own limit: entries come from a disk, are bounded by `PAYLOAD_MAX`, and say how large they
#: become before they are opened. Rows that repeat compress thousandfold.
LOG_RATIO_MAX: Final = 1 << 20

#: Below this many bytes a zstd frame only adds; heartbeats stay as they are.
COMPRESS_MIN: Final = 128
#: Largest part of a body that is compressed as one block.
_BLOCK_BYTES_MAX: Final = 16 * 1024
#: A window of a mebibyte: no frame of ours needs more memory than that.
_WINDOW_LOG_MAX: Final = 20
_WINDOW_LOG_MIN: Final = 10


def compressed(
    body: bytes, *, ratio_max: int = RATIO_MAX, columns: Iterable[int] = ()
) -> bytes | None:
    """One zstd frame; None where it would not be smaller, or would be refused for its ratio.

    Args:
        body: what to compress.
        ratio_max: how many times as large as the frame the body may be.
        columns: where bytes of another kind begin, ascending. Blocks begin there, because bytes of one
            column have more in common than all have.
    """
    if len(body) < COMPRESS_MIN:
        return None
    compressor = zstd.ZstdCompressor(
        options={zstd.CompressionParameter.window_log: _window_log(len(body))}
    )
    compressor.set_pledged_input_size(len(body))
    ends = [*columns, len(body)]
    blocks = [
        compressor.compress(
            body[start : min(start + _BLOCK_BYTES_MAX, end)], mode=compressor.FLUSH_BLOCK
        )
        for begin, end in zip([0, *ends], ends, strict=False)
        for start in range(begin, end, _BLOCK_BYTES_MAX)
    ]
    frame = b"".join((*blocks, compressor.flush()))
    is_worth_it = len(frame) < len(body) <= ratio_max * len(frame)
    return frame if is_worth_it else None


def _window_log(size: int) -> int:
    """As large a window as the body needs, and no larger than a reader allows."""
    return min(max(size.bit_length(), _WINDOW_LOG_MIN), _WINDOW_LOG_MAX)


def decompressed(frame: bytes, limit: int, *, ratio_max: int = RATIO_MAX) -> bytes:
    """What a frame holds.

    Raises:
        Malformed: it is no frame or damaged, does not say how large it becomes, says nothing, or lies about it.
        Oversize: it says more than `limit`, or more than `ratio_max` times the frame.
        TornFrame: it ends early.
    """
    try:
        size = zstd.get_frame_info(frame).decompressed_size
    except zstd.ZstdError as exc:
        raise Malformed(Reason.UNPARSABLE, f"message: {exc}") from exc
    if not size:
        raise Malformed(
            Reason.MISSING, "message: the zstd frame does not declare its content's size"
        )
    check_size("message, decompressed", size, limit)
    if size > ratio_max * len(frame):
        raise Oversize(
            f"message, decompressed from {len(frame)} bytes", size, ratio_max * len(frame)
        )
    decompressor = zstd.ZstdDecompressor(
        options={zstd.DecompressionParameter.window_log_max: _WINDOW_LOG_MAX}
    )
    try:
        body = decompressor.decompress(frame, max_length=size + 1)
    except zstd.ZstdError as exc:
        raise Malformed(Reason.UNPARSABLE, f"message: {exc}") from exc
    if not decompressor.eof:
        if len(body) > size:
            raise Oversize("message, decompressed", len(body), size)
        raise TornFrame("message, compressed", len(frame) + 1, len(frame))
    if len(body) != size:
        raise Malformed(Reason.BAD_STRUCTURE, f"message: {len(body)} bytes, said to be {size}")
    if decompressor.unused_data:
        raise Malformed(Reason.BAD_STRUCTURE, "message: bytes behind the zstd frame")
    return body
