"""Tables of cases, each with the id that its row is named by, and what the wire refuses."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from rgd.wire.errors import Reason, WireError


def cases(names: str, table: Mapping[str, tuple[object, ...]]) -> pytest.MarkDecorator:
    """Runs a test with each row of a table; the names of its values have commas between them."""
    return pytest.mark.parametrize(
        names, [pytest.param(*row, id=name) for name, row in table.items()]
    )


@contextmanager
def refused(reason: Reason) -> Iterator[None]:
    """Bytes, or a value, are refused for this reason."""
    with pytest.raises(WireError) as caught:
        yield
    assert caught.value.reason is reason, caught.value
