"""What a request may ask for: a path and a query that stand for text.

Law: names in a path or a query are percent-encoded UTF-8, on every call; what is not is refused before
anybody decodes it (below `/v1/check/` nobody reads them). Decoders pass over what they cannot decode (`%ff` would become a name of three
characters) or put another character in its place, so that two names become one.

Which characters a name may have is `rgd.core.policies.names`' business; none may have control characters.
"""

import re
from typing import Final
from urllib.parse import unquote_to_bytes

from rgd.adapters.http.errors import CallError

_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def check_target(target: str) -> None:
    """Refuse a target that is no text.

    Args:
        target: path and query as they came; bytes that were no UTF-8 are surrogates.

    Raises:
        CallError
    """
    if "%" not in target and target.isascii():
        return
    if _PERCENT.search(target):
        raise bad_target("a % that two hexadecimal digits do not follow")
    try:
        unquote_to_bytes(target.encode()).decode()
    except UnicodeError:
        raise bad_target("other bytes") from None


def bad_target(got: str, expected: str = "percent-encoded UTF-8") -> CallError:
    """The path or the query is no text, or too much of it."""
    return CallError(400, f"path and query: expected {expected}, got {got}")
