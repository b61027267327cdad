"""Carrying a log to its tier: nothing lost, nothing double, whatever fails and whoever else carries.

Law: after any failures, once the tier works, the tier holds each closed segment once and byte for byte,
and a segment is on the disk or in the tier at all times. The lag is what is closed and not there.
Tiers are a folder and a bucket on an S3 server; time is the test's.
"""

import random
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgd.adapters.usagelog import tiering
from rgd.adapters.usagelog.reader import read_entries
from rgd.adapters.usagelog.retention import Limits
from rgd.adapters.usagelog.tier_state import TierLag, TierState, lag_of
from rgd.adapters.usagelog.tiering import TierDeleted, Uploader
from rgd.errors import RgdError
from rgd.storage.errors import TierConflict, TierDown
from rgd.storage.manifest import ClosedSegment, TieredSegment
from rgd.storage.objects import Objects
from tests.support.there import there
from tests.unit.adapters.usagelog.logs import (
    T0,
    TIMEOUT_S,
    payload_of,
    pendings,
    segments_in,
    write_log,
)
from tests.unit.adapters.usagelog.tier_world import COUNT, SETTINGS, STEP_MS, World, payloads


class Flaky(Objects):
    """Fails as its dice say: before a change was made, or after it."""

    def __init__(self, place: str, chance: float, dice: random.Random) -> None:
        super().__init__(place)
        self.chance = chance
        self.dice = dice

    def create(self, name: str, data: bytes) -> bool:
        self._may_fail()
        made = super().create(name, data)
        self._may_fail()
        return made

    def delete(self, name: str) -> None:
        self._may_fail()
        super().delete(name)
        self._may_fail()

    def names(self, prefix: str) -> dict[str, int]:
        self._may_fail()
        return super().names(prefix)

    def _may_fail(self) -> None:
        if self.dice.random() < self.chance:
            raise TierDown("as the dice say")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "log")


@pytest.mark.slow
@settings(max_examples=20)
@given(seed=st.integers(0, 1 << 32), chance=st.sampled_from([0.05, 0.2, 0.4]))
def test_whatever_fails_nothing_is_lost_and_nothing_double(
    tmp_path_factory: pytest.TempPathFactory, seed: int, chance: float
) -> None:
    folder = tmp_path_factory.mktemp("flaky")
    dice = random.Random(seed)
    world, place = World(folder / "log"), str(folder / "tier")
    world.write(50)
    before = payloads(world.folder)
    flaky = Flaky(place, chance, dice)
    uploaders = [world.uploader(flaky), world.uploader(flaky, log="2")]
    for _ in range(500):
        number = dice.randrange(2)
        if dice.random() < 0.2:
            # A process that was killed: what it knew is what it had stored.
            uploaders[number] = world.uploader(flaky)
        try:
            uploaders[number].cycle()
        except TierDown:
            flaky.chance *= 0.99
            continue
        break
    flaky.chance = 0
    world.uploader(flaky).cycle()
    assert payloads(place) + payloads(world.folder) == before
    assert len(segments_in(world.folder)) == 1


def test_two_uploaders_at_once_double_nothing(world: World, tier_place: str) -> None:
    world.write()
    before = payloads(world.folder)
    uploaders = [world.uploader(Objects(tier_place)) for _ in range(2)]
    failures: list[Exception] = []

    def carry(uploader: Uploader) -> None:
        try:
            for _ in range(3):
                uploader.cycle()
        except Exception as error:  # noqa: BLE001 -- told by the test itself
            failures.append(error)

    threads = [threading.Thread(target=carry, args=(uploader,)) for uploader in uploaders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert failures == []
    assert payloads(tier_place) + payloads(world.folder) == before
    assert [one.state.uploaded for one in uploaders] == [uploaders[0].state.uploaded] * 2


def test_a_log_that_counts_again_is_kept_and_reported(world: World, tier_place: str) -> None:
    world.write()
    uploader = world.uploader(Objects(tier_place), local_s=0)
    uploader.cycle()
    for path in world.folder.glob("*.log"):
        path.unlink()
    for path in world.folder.glob("*.idx"):
        path.unlink()
    world.pass_s(60)
    write_log(world.folder, pendings(COUNT, first=0, step_ms=STEP_MS + 1), SETTINGS)
    again = world.uploader(Objects(tier_place), local_s=0)
    with pytest.raises(
        TierConflict, match="it holds, or held, other entries than this log from index 0 on"
    ):
        again.cycle()
    lag = there(again.lag(0))
    assert lag.upload_segments == len(world.closed())
    assert payloads(world.folder) == [payload_of(number) for number in range(COUNT)]


def test_retention_marks_waits_and_deletes(world: World, tier_place: str) -> None:
    world.write()
    limits = Limits(retention_ms=505)
    uploader = world.uploader(Objects(tier_place), limits=limits, delete_delay_s=0.002)
    uploader.cycle()
    newest = uploader.state.segments[-1].last_ms
    kept = [one for one in uploader.state.segments if newest - one.last_ms <= 505]
    assert list(uploader.state.segments) == kept
    marked = uploader.state.marked
    assert marked
    # Marked ones are not read any more, and are there until the delay is over; also after a restart.
    assert payloads(tier_place)[0] == payload_of(kept[0].first_index)
    assert uploader.tier.list().marked == marked
    again = world.uploader(Objects(tier_place), limits=limits, delete_delay_s=0.002)
    lag = there(again.lag(T0))
    assert lag.delete_segments == len(marked)
    assert lag.delete_records == sum(one.last_index - one.first_index + 1 for one in marked)
    world.pass_s(0.001)
    again.cycle()
    world.pass_s(0.001)
    again.cycle()
    assert again.state.marked == marked
    world.pass_s(0.001)
    again.cycle()
    assert again.state.marked == ()
    assert again.tier.list().segments == tuple(kept)
    assert {
        int(name.split("/")[-1][:20]) for name in again.tier.objects.names(again.tier.prefix)
    } == {one.first_index for one in kept}
    deleted = [event.segment for event in world.events if isinstance(event, TierDeleted)]
    assert deleted == list(marked)


def test_retention_goes_by_the_age_now(world: World, tier_place: str) -> None:
    """Nothing is logged any more, so the last closed segment's time says nothing of today's."""
    world.write()
    limits = Limits(retention_ms=5_000)
    uploader = world.uploader(Objects(tier_place), limits=limits, delete_delay_s=0)
    uploader.cycle()
    held = uploader.state.segments
    assert held
    world.pass_s(5)
    lag = there(uploader.lag(T0))
    assert 0 < lag.delete_segments < len(held)
    world.pass_s(0.001)
    lag = there(uploader.lag(T0))
    assert lag.delete_segments == len(held)
    uploader.cycle()
    assert (uploader.state.segments, uploader.state.marked) == ((), ())
    assert uploader.counts.deleted_segments == len(held)


def test_errors_of_copying_and_of_deleting_are_counted_apart(world: World, tmp_path: Path) -> None:
    class NoDeletes(Objects):
        def delete(self, name: str) -> None:
            raise TierDown(name)

    world.write()
    failing = Flaky(str(tmp_path / "tier"), 1.0, random.Random(1))
    uploader = world.uploader(failing)
    with pytest.raises(TierDown):
        uploader.cycle()
    assert (uploader.counts.copy_errors, uploader.counts.delete_errors) == (1, 0)
    limits = Limits(retention_ms=1)
    uploader = world.uploader(NoDeletes(str(tmp_path / "tier")), limits=limits, delete_delay_s=0)
    with pytest.raises(TierDown):
        uploader.cycle()
    assert (uploader.counts.copy_errors, uploader.counts.delete_errors) == (0, 1)


def test_the_bandwidth_limit_holds_on_average(world: World, tier_place: str) -> None:
    world.write()
    uploader = world.uploader(Objects(tier_place), bytes_per_s=1024)
    sizes = [path.stat().st_size for path in segments_in(world.folder)]
    waits: list[float] = []

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        world.pass_s(seconds)
        return False

    uploader._stopping.wait = wait  # type: ignore[assignment, method-assign]
    uploader.cycle()
    assert sum(waits) == pytest.approx(sum(sizes[:-2]) / 1024)


@pytest.mark.slow
def test_the_lag_rises_at_every_roll_without_any_upload(world: World, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    place = str(tmp_path / "file" / "tier")  # Cannot be made: the tier is down.
    world.write(1)
    uploader = world.uploader(Objects(place))
    before = 0
    rolls = 0
    for number in range(1, 60):
        count = len(segments_in(world.folder))
        world.write(1, first=number)
        lag = there(uploader.lag(T0 + 60_000))
        if len(segments_in(world.folder)) > count:
            rolls += 1
            assert lag.upload_records > before
        assert lag.upload_segments == rolls
        # All but the active segment, which holds what is above.
        assert lag.upload_records == int(segments_in(world.folder)[-1].stem)
        before = lag.upload_records
    assert rolls > 3
    with pytest.raises(TierDown):
        uploader.cycle()
    again = world.uploader(Objects(place))
    assert again.lag(T0) == uploader.lag(T0)
    lag = there(again.lag(T0 + 60_000))
    assert lag.upload_oldest_s == (T0 + 60_000 - world.closed()[0].last_ms) / 1000
    (tmp_path / "file").unlink()
    again.cycle()
    lag = there(again.lag(T0 + 60_000))
    assert (lag.upload_records, lag.upload_bytes, lag.upload_segments) == (0, 0, 0)
    assert lag.upload_oldest_s == 0
    again.stop()
    assert again.lag(T0) is None


def test_segments_go_up_in_order_and_the_lag_is_known_while_an_upload_hangs(
    world: World, tier_place: str
) -> None:
    """KIP-963: the lag is the distance of base offsets, and no lock of the upload is acquired for it."""
    world.write()
    closed = world.closed()
    first_of_active = int(segments_in(world.folder)[-1].stem)
    uploader = world.uploader(Objects(tier_place), local_s=3600)
    put, carried = uploader.tier.put, []

    def slow(segment: TieredSegment, data: bytes, marks: bytes) -> None:
        found: list[TierLag | None] = []
        # Of another thread, as a scrape's: a lock that this one holds would stop it.
        scrape = threading.Thread(target=lambda: found.append(uploader.lag(T0)), daemon=True)
        scrape.start()
        scrape.join(TIMEOUT_S)
        lag = there(found[0])
        assert lag.upload_records == first_of_active - segment.first_index
        carried.append(segment.first_index)
        put(segment, data, marks)

    uploader.tier.put = slow  # type: ignore[method-assign]
    uploader.cycle()
    assert carried == [one.first_index for one in closed]


def test_a_single_record_that_was_uploaded_is_no_lag() -> None:
    closed = [ClosedSegment(0, 0, T0, T0, 10), ClosedSegment(1, 1, T0, T0, 10)]
    state = TierState("place", "1", 0, None, 1).with_uploaded(TieredSegment(0, 0, T0, T0, 10, 0))
    assert lag_of(state, closed, [], T0).upload_records == 1
    state = state.with_uploaded(TieredSegment(1, 1, T0, T0, 10, 0))
    assert lag_of(state, closed, [], T0).upload_records == 0


def test_a_request_that_hangs_is_reported_while_it_does(world: World, tier_place: str) -> None:
    world.write()
    uploader = world.uploader(Objects(tier_place))
    put, told = uploader.tier.put, []

    def slow(*arguments: object) -> None:
        world.pass_s(tiering.STUCK_S)
        told.append(uploader.trouble)
        world.pass_s(1)
        told.append(uploader.trouble)
        put(*arguments)  # type: ignore[arg-type]

    uploader.tier.put = slow  # type: ignore[assignment, method-assign]
    uploader.cycle()
    assert told[0] is None
    assert "expected an answer, waiting since 601 s" in (told[1] or "")
    assert uploader.trouble is None


def test_what_is_no_log_in_a_tier_is_reported(tier_place: str) -> None:
    Objects(tier_place).create("usage/other.txt", b"")
    with pytest.raises(RgdError):
        list(read_entries(tier_place if "://" in tier_place else tier_place + "/none"))
