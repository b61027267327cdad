"""Logs with both, one or none of Pulsar's interceptors: numbering, recovery and seeking go on.

Not covered: what the settings accept (tests/unit/config).
"""

import os
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path

import pytest

from rgd.adapters.usagelog.appender import Appender, Pending
from rgd.adapters.usagelog.files import list_segments
from rgd.adapters.usagelog.recovery import recover
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.trimming import facts_of
from rgd.core.exchange.messages import Loggable, PoliciesInForce, Sender
from rgd.core.policies.model import Group
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.ports.usagelog import Interceptor
from rgd.wire import log_policies
from tests.unit.adapters.usagelog.logs import T0, read, segments_in, write_log

SUBSETS = [
    frozenset(subset)
    for subset in chain.from_iterable(combinations(Interceptor, size) for size in range(3))
]


def settings_with(interceptors: frozenset[Interceptor]) -> UsageLogSettings:
    return UsageLogSettings(segment_bytes=20_000, interceptors=interceptors)


def batch(first: int, count: int) -> list[Pending]:
    return [
        Pending(b"%d" % number, T0 + 10 * number, number - first)
        for number in range(first, first + count)
    ]


@pytest.mark.parametrize(
    "interceptors", SUBSETS, ids=lambda subset: "+".join(sorted(subset)) or "none"
)
def test_an_entry_has_what_the_interceptors_add(
    tmp_path: Path, interceptors: frozenset[Interceptor]
) -> None:
    write_log(tmp_path, batch(0, 3), settings_with(interceptors))
    for number, item in enumerate(read(tmp_path)[0]):
        entry = item.entry
        assert (entry.broker is None) == (not interceptors)
        assert entry.index == (number if Interceptor.INDEX in interceptors else None)
        stamped = Interceptor.TIMESTAMP in interceptors
        assert entry.broker_timestamp == (T0 + 10 * number if stamped else None)
    (segment,) = segments_in(tmp_path)
    segment.write_bytes(segment.read_bytes()[:-1] + b"?")
    # Whether a damaged entry counts, its segment ends where the log goes on.
    (closed,) = map(facts_of, list_segments(tmp_path))
    assert closed.last_index + 1 == recover(tmp_path).next_index


@pytest.mark.parametrize("later", SUBSETS, ids=lambda subset: "+".join(sorted(subset)) or "none")
@pytest.mark.parametrize("first", SUBSETS, ids=lambda subset: "+".join(sorted(subset)) or "none")
def test_numbering_goes_on_whatever_was_added_before_and_is_added_now(
    tmp_path: Path, first: frozenset[Interceptor], later: frozenset[Interceptor]
) -> None:
    for life, interceptors in enumerate((first, later, frozenset(Interceptor))):
        with (segments_in(tmp_path) or [tmp_path / "none"])[-1].open("ab") as segment:
            segment.write(b"\0\0\1")  # an end that was torn
        if life == 0:
            (tmp_path / "none").unlink()
        write_log(tmp_path, batch(300 * life, 300), settings_with(interceptors))
    entries, damaged = read(tmp_path)
    assert damaged == []
    assert [item.entry.payload for item in entries] == [b"%d" % number for number in range(900)]
    assert [item.entry.index for item in entries[600:]] == list(range(600, 900))
    names = [int(segment.stem) for segment in segments_in(tmp_path)]
    places = {Path(item.path).stem: number for number, item in reversed(list(enumerate(entries)))}
    assert names == [places[segment.stem] for segment in segments_in(tmp_path)]
    assert [item.entry.sequence_id for item in entries] == list(range(900))


class Failing:
    """Does something wrong at one call. The first entry of a segment takes two, around those of the policies."""

    def __init__(self, wrong: bytes | BaseException, call: int) -> None:
        self.wrong = wrong
        self.left = call

    def intercept(self, timestamp_ms: int | None, index: int | None) -> bytes:
        del timestamp_ms, index
        self.left -= 1
        if self.left:
            return b""
        if isinstance(self.wrong, BaseException):
            raise self.wrong
        return self.wrong


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(ValueError("as the test says"), id="raises"),
        pytest.param(FileNotFoundError("a file of its own"), id="raises-as-a-disk-does"),
        pytest.param(SystemExit(3), id="exits"),
        pytest.param(b"\x7a\x82\x40" + bytes(8194), id="too-long"),
        pytest.param(b"\xff", id="no-field"),
        pytest.param(b"\x10\x05", id="pulsars-field"),
    ],
)
def test_an_own_one_that_fails_loses_its_entry_alone(
    tmp_path: Path, wrong: bytes | BaseException
) -> None:
    faults: list[Exception] = []
    settings = replace(settings_with(frozenset(Interceptor)), own_interceptors=(Failing(wrong, 3),))
    appender = Appender(tmp_path, settings, broker="b1", on_fault=faults.append)
    appender.resume()
    for pending in batch(0, 3):
        appender.write([pending])
    appender.close()
    assert (appender.appended, appender.unwritable, len(faults)) == (2, 1, 1)
    entries, damaged = read(tmp_path)
    assert [item.entry.index for item in entries] == [0, 1]
    assert damaged == []


@pytest.mark.parametrize("call", [2, 3])
def test_an_own_one_that_fails_where_a_segment_begins_leaves_none_without_policies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    monkeypatch.setattr(log_policies, "KEYS_MAX", 1)
    synced: set[int] = set()
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.add(os.fstat(descriptor).st_ino))
    own = (Failing(ValueError("as the test says"), call),)
    settings = replace(settings_with(frozenset(Interceptor)), own_interceptors=own)
    appender = Appender(tmp_path, settings, broker="b1", on_fault=lambda _: None)
    appender.resume()
    groups = {name: Group(name) for name in ("gold", "silver")}
    policies = PoliciesInForce(Sender("b1", 1), PolicySnapshot(groups))
    batch: list[Loggable] = [policies, b"1", b"2"]
    appender.write([Pending(item, T0 + 10 * at, at) for at, item in enumerate(batch)])
    appender.sync()
    appender.close()
    assert appender.unwritable == 1
    # The policies that began, those of the next segment, and the last one.
    assert appender.appended == call - 2 + 3
    assert appender.synced_index == appender.next_index - 1
    assert synced >= {segment.stat().st_ino for segment in segments_in(tmp_path)}
