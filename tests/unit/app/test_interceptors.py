"""Interceptors of the operator's own (PIP-70): found by dotted path or entry point, or a clear error at the start."""

from importlib.metadata import EntryPoint, EntryPoints

import pytest

from rgd.app import interceptors
from rgd.app.interceptors import load_interceptors
from rgd.errors import ConfigError

HERE = __name__


class Rack:
    """Adds the rack of the broker as field 15."""

    def intercept(self, timestamp_ms: int | None, index: int | None) -> bytes:
        del timestamp_ms, index
        return b"\x7a\x02r7"


class Leaver:
    """Ends whoever makes one."""

    def __init__(self) -> None:
        raise SystemExit(3)


class Odd:
    """Returns what is no field."""

    def intercept(self, timestamp_ms: int | None, index: int | None) -> object:
        del timestamp_ms, index
        return b"\xff"


class Wordy(Odd):
    """Returns no bytes."""

    def intercept(self, timestamp_ms: int | None, index: int | None) -> object:
        del timestamp_ms, index
        return "r7"


class Endless(Odd):
    """Returns more than an entry can take."""

    def intercept(self, timestamp_ms: int | None, index: int | None) -> object:
        del timestamp_ms, index
        return b"\x7a\x82\x40" + bytes(8194)


def test_a_class_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("rack", f"{HERE}:Rack", "rgd_interceptors")
    monkeypatch.setattr(interceptors, "entry_points", lambda **_: EntryPoints([point]))
    (own,) = load_interceptors(["rack"])
    assert isinstance(own, Rack)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        pytest.param("no.such.module.Rack", "No module named", id="no-module"),
        pytest.param(f"{HERE}.Rock", "Rock", id="no-class"),
        pytest.param(f"{HERE}.Leaver", "SystemExit: 3", id="ends-the-process"),
        pytest.param(f"{HERE}.Odd", "Malformed", id="no-fields"),
        pytest.param(f"{HERE}.Wordy", "TypeError", id="no-bytes"),
        pytest.param(f"{HERE}.Endless", "above the limit of 4096", id="too-long"),
    ],
)
def test_one_that_cannot_be_used_is_named_with_what_was_expected(name: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        load_interceptors([name])
    (fault,) = caught.value.faults
    assert fault.key == "log.brokerEntryMetadataInterceptors"
    assert name in fault.expected
    assert "intercept(timestamp_ms, index) -> bytes" in fault.expected
