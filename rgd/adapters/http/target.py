"""What a request may ask for: a path and a query that stand for text.

Law: names in a path or a query are percent-encoded UTF-8, on every call; what is not is refused before
anybody decodes it. Decoders pass over what they cannot decode (`%ff` would become a name of three
characters) or put another character in its place, so that two names become one.

Which characters a name may have is `rgd.core.policies.names`' business; none may have control characters.
"""

import re
from typing import Final
from urllib.parse import unquote_to_bytes

from rgd.adapters.http.errors import BadTarget

_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def check_target(target: str) -> None:
    """Refuse a target that is no text.

    Args:
        target: path and query as they came; bytes that were no UTF-8 are surrogates.

    Raises:
        BadTarget
    """
    if "%" not in target and target.isascii():
        return
    if _PERCENT.search(target):
        raise BadTarget("a % that two hexadecimal digits do not follow")
    try:
        unquote_to_bytes(target.encode()).decode()
    except UnicodeError:
        raise BadTarget("other bytes") from None
