"""An S3 server behind a network that fails: refused, cut in the middle of a body, answers that never come.

Law: the uploader goes on by itself once the network does; then every entry is in the tier or on disk, once.
"""

import random
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from rgd.adapters.usagelog.reader import LogEntry, read_entries
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.tiering import (
    TierAlarm,
    TierDeleted,
    TierParts,
    TierSettings,
    Uploader,
    closed_on_disk,
)
from rgd.backoff import Backoff
from rgd.storage.errors import TierDown
from rgd.storage.objects import Objects
from tests.support.tiers import Gate, S3Server, s3_environment
from tests.unit.adapters.usagelog.logs import TIMEOUT_S, clock, pendings, segments_in, write_log

COUNT = 400
SETTINGS = UsageLogSettings(segment_bytes=8192)


class Network:
    """A bucket, the gate before it, and an uploader whose alarms can be waited for."""

    def __init__(self, server: S3Server, gate: Gate, folder: Path) -> None:
        self.gate = gate
        self.folder = folder
        self.place = f"s3://{server.make_bucket()}"
        self.troubles: list[str | None] = []
        self.happened = threading.Condition()
        write_log(folder, pendings(COUNT), SETTINGS)
        self.payloads = list(self._read(folder))

    def uploader(self, *, timeout_s: float = TIMEOUT_S) -> Uploader:
        parts = TierParts(
            objects=Objects(self.place, timeout_s=timeout_s),
            closed=lambda: closed_on_disk(self.folder),
            clock=clock,
            backoff=Backoff(first_s=0.01, pause_s_max=0.1, dice=random.Random(1)),
            on_event=self._tell,
        )
        return Uploader(self.folder, parts, TierSettings(), new_log="1")

    def await_troubles(self, count: int) -> None:
        with self.happened:
            assert self.happened.wait_for(lambda: len(self.troubles) >= count, TIMEOUT_S)

    def assert_whole(self) -> None:
        """All is there once, and all but the active segment in the tier."""
        assert len(segments_in(self.folder)) == 1
        assert [*self._read(self.place), *self._read(self.folder)] == self.payloads

    def _read(self, place: Path | str) -> Iterator[bytes]:
        for found in read_entries(place):
            assert isinstance(found, LogEntry)
            yield found.entry.payload

    def _tell(self, event: TierAlarm | TierDeleted) -> None:
        with self.happened:
            if isinstance(event, TierAlarm):
                self.troubles.append(event.trouble)
            self.happened.notify_all()


@pytest.fixture
def network(
    s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Network]:
    gate = Gate(s3_server.port)
    with s3_environment(monkeypatch, gate.port):
        yield Network(s3_server, gate, tmp_path / "broker-1")
    gate.close()


def test_an_outage_is_told_and_outlived(network: Network) -> None:
    network.gate.is_open = False
    uploader = network.uploader()
    uploader.start()
    try:
        network.await_troubles(1)
        lag = uploader.lag(0)
        assert lag is not None
        assert lag.upload_segments == len(segments_in(network.folder)) - 1
        network.gate.is_open = True
        network.await_troubles(2)
    finally:
        uploader.stop()
    assert network.troubles[1] is None
    network.assert_whole()


def test_bodies_that_are_cut_leave_nothing_half(network: Network) -> None:
    network.gate.cut_after = 4096
    uploader = network.uploader()
    with pytest.raises(TierDown):
        uploader.cycle()
    assert uploader.state.segments == ()
    network.gate.cut_after = None
    assert not any(name.endswith(".log") for name in Objects(network.place).names(""))
    uploader.cycle()
    network.assert_whole()


def test_a_link_that_never_answers_runs_into_the_timeout(network: Network) -> None:
    network.gate.is_stalled = True
    uploader = network.uploader(timeout_s=0.5)
    with pytest.raises(TierDown):
        uploader.cycle()
    network.gate.is_stalled = False
    # A busy machine may need longer than the short timeout.
    while True:
        with suppress(TierDown):
            uploader.cycle()
            break
    network.assert_whole()
