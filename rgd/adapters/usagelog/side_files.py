"""The small JSON files beside a log: read within limits, and set aside where they make no sense.

Law: whatever such a file holds, reading it ends, takes at most `bytes_max`, and gives values of the expected types, or
nothing. A damaged file is renamed and never deleted, and whoever reads it goes on without it and says so.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from rgd.config.plain_files import read_plain_file

#: What a damaged file's name ends in, and the most of one name that are kept.
SUFFIX: Final = ".damaged"
KEPT_MAX: Final = 16

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class SetAside:
    """A damaged file that was renamed."""

    path: Path
    #: Where it is now; None: it could not be renamed, and will be overwritten.
    kept: Path | None
    why: str


def read_side_file(
    path: Path, bytes_max: int, decode: Callable[[bytes], _Value]
) -> tuple[_Value | None, SetAside | None]:
    """The value in a file, None where there is no usable one, and the damaged file that was set aside."""
    try:
        data = read_plain_file(path, bytes_max)
        if len(data) > bytes_max:
            return None, set_aside(path, f"expected at most {bytes_max:,} bytes")
        return decode(data), None
    except FileNotFoundError:
        return None, None
    except OSError as error:
        return None, set_aside(path, f"cannot be read: {error.strerror or error}")
    except (msgspec.MsgspecError, RecursionError) as error:
        return None, set_aside(path, str(error))


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
