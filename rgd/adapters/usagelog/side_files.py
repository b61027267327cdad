"""The small JSON files beside a log: read within limits, and set aside where they make no sense.

Law: whatever such a file holds, reading it ends, takes at most `bytes_max`, and gives values of the expected types, or
nothing. A damaged file is renamed and never deleted, and whoever reads it goes on without it and says so.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from rgd.config.plain_files import SetAside, read_plain_file, set_aside

_Value = TypeVar("_Value")


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
