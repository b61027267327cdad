"""The small JSON files beside a log: read within limits, and set aside where they make no sense.

Law: whatever such a file holds, reading it ends, takes at most `bytes_max`, and gives values of the expected types;
everything else is `SideFileDamaged`. A damaged file is renamed and never deleted, and
whoever reads it goes on without it and says so.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from rgd.config.plain_files import read_plain_file

#: What a damaged file's name ends in, and the most of one name that are kept.
SUFFIX: Final = ".damaged"
KEPT_MAX: Final = 16

_Value = TypeVar("_Value")


class SideFileDamaged(Exception):
    """It is there, and is not what rgd writes."""


@dataclass(frozen=True, slots=True)
class SetAside:
    """A damaged file that was renamed."""

    path: Path
    #: Where it is now; None: it could not be renamed, and will be overwritten.
    kept: Path | None
    why: str


def read_side_file(path: Path, bytes_max: int, decoder: msgspec.json.Decoder[_Value]) -> _Value:
    """The value in a file.

    Raises:
        FileNotFoundError: there is none.
        SideFileDamaged: it cannot be read, or is not what the decoder expects.
    """
    try:
        data = read_plain_file(path, bytes_max)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SideFileDamaged(f"cannot be read: {error.strerror or error}") from error
    if len(data) > bytes_max:
        raise SideFileDamaged(f"expected at most {bytes_max:,} bytes")
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise SideFileDamaged(str(error)) from error


def set_aside(path: Path, why: str) -> SetAside:
    """Rename a damaged file, so that its name is free; the first `KEPT_MAX` - 1 and the last are kept."""
    numbers = range(KEPT_MAX)
    names = [path.with_name(f"{path.name}{SUFFIX}-{number}") for number in numbers]
    kept = next((name for name in names if not name.exists()), names[-1])
    try:
        path.replace(kept)
    except OSError:
        return SetAside(path, None, why)
    return SetAside(path, kept, why)
