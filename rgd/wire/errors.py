"""What can be wrong with bytes; every decoder raises these and nothing else.

Law: whatever the input, decoding ends in a value or in a `WireError`; an `IndexError`,
`struct.error` or protobuf's own error that escapes is a bug. `reason` is one of the few words of
`Reason`, fit for a metric label; the message is for people.

Encoders raise them too, where a value cannot be written so that a decoder would take it back.
"""

from enum import StrEnum

from rgd.errors import RgdError
from rgd.text import cut


class Reason(StrEnum):
    """Why bytes were refused; a closed set, so that it can label a metric."""

    #: The bytes end before the value does.
    TORN = "torn"
    #: The checksum says that the bytes changed.
    CHECKSUM = "checksum"
    #: A version that this build does not know.
    UNKNOWN_VERSION = "unknown_version"
    #: Larger than a named limit.
    OVERSIZE = "oversize"
    #: Not this format at all: protobuf, zstd or JSON cannot read it.
    UNPARSABLE = "unparsable"
    #: The format's own lengths or flags contradict one another.
    BAD_STRUCTURE = "bad_structure"
    #: Columns of different lengths.
    BAD_COLUMNS = "bad_columns"
    #: A name that cannot be one.
    BAD_NAME = "bad_name"
    #: A number out of its range.
    BAD_NUMBER = "bad_number"
    #: One thing twice.
    DUPLICATE = "duplicate"
    #: Something that must be there is not.
    MISSING = "missing"
    #: It continues a record that was not read.
    UNLINKED = "unlinked"


class WireError(RgdError):
    """Bytes that are not a value, or a value that cannot be bytes."""

    def __init__(self, reason: Reason, message: str) -> None:
        self.reason = reason
        super().__init__(message)


class TornFrame(WireError):
    """The bytes end before the frame does; with more of them it may be whole."""

    def __init__(self, what: str, needed_bytes: int, present_bytes: int) -> None:
        super().__init__(
            Reason.TORN, f"{what}: needs {needed_bytes} bytes, {present_bytes} are there"
        )


class ChecksumMismatch(WireError):
    """The bytes are not those that were written."""

    def __init__(self, offset: int) -> None:
        #: Of the checksum, in bytes from the start of the entry.
        self.offset = offset
        super().__init__(Reason.CHECKSUM, f"the CRC32C at offset {offset} does not match")


class UnknownVersion(WireError):
    """Written by a version that this build does not know."""

    def __init__(self, what: str, version: object) -> None:
        self.version = cut(str(version), 20)
        super().__init__(Reason.UNKNOWN_VERSION, f"{what}: version {self.version!r} is not known")


class Oversize(WireError):
    """Larger than a named limit."""

    def __init__(self, what: str, size: int, limit: int) -> None:
        super().__init__(Reason.OVERSIZE, f"{what}: {size} is above the limit of {limit}")


class Malformed(WireError):
    """Anything else that is wrong; `reason` says which kind."""
