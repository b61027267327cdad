"""What comes out of an array: its items in order, or one fault for all of it."""

import msgspec
import pytest

from rgd.adapters.http import array_body
from rgd.adapters.http.array_body import ArrayReader
from rgd.adapters.http.bodies import AcquireBody
from rgd.adapters.http.errors import CallError

MANY = 1_000_000


def read(body: bytes, batch_max: int = MANY) -> list[AcquireBody | msgspec.Raw]:
    return ArrayReader(AcquireBody).read(body, batch_max)


def test_reading_stops_at_the_first_item_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(array_body, "_decode_raw", None)
        with pytest.raises(CallError, match="at most 1000 items"):
            read(b"[" + b"{}," * 1000 + b"{}]", 1000)
    assert len(read(b"[" + b"{}," * 999 + b"{}]", 1000)) == 1000
