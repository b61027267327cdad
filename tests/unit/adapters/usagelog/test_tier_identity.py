"""A tier that vanishes looks like an empty one: nothing may leave the disk, and nothing may be begun there.

Law: while the place of a tier holds no tier, or another one, the uploader creates, drops and deletes nothing and
the lag rises; once the tier is back, it goes on as if nothing had been.
"""

import json
from pathlib import Path

import pytest

from rgd.adapters.usagelog.sources import TierSource
from rgd.adapters.usagelog.tier_state import state_path
from rgd.storage.errors import TierChanged, TierDamaged
from rgd.storage.identity import MARKER
from rgd.storage.objects import Objects, canonical
from tests.support.there import there
from tests.unit.adapters.usagelog.logs import segments_in
from tests.unit.adapters.usagelog.tier_world import COUNT, World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "log")


@pytest.fixture
def emptied(world: World, tier_place: str) -> Objects:
    """A tier that holds a part of the log, and then nothing at all."""
    world.write()
    world.uploader(Objects(tier_place)).cycle()
    objects = Objects(tier_place)
    for name in objects.names(""):
        objects.delete(name)
    world.write(COUNT, first=COUNT)
    return objects


def test_nothing_goes_up_under_a_number_that_cannot_be_stored(
    world: World, tier_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space")

    world.write()
    with monkeypatch.context() as patched:
        patched.setattr("rgd.adapters.usagelog.tier_state.replace_file", full)
        uploader = world.uploader(Objects(tier_place))
        with pytest.raises(OSError, match="no space"):
            uploader.cycle()
    assert not Objects(tier_place).names("")
    uploader.cycle()
    assert world.uploader(Objects(tier_place), log="2").state.log == "1"


@pytest.mark.slow
def test_a_folder_that_is_unmounted_is_an_outage(world: World, tmp_path: Path) -> None:
    mount, away = tmp_path / "mnt" / "tier", tmp_path / "away"
    world.write()
    uploader = world.uploader(Objects(str(mount)))
    uploader.cycle()
    mount.rename(away)
    for is_mount_point_left in (False, True):
        if is_mount_point_left:
            mount.mkdir()
        before = segments_in(world.folder)
        world.write(COUNT, first=int(before[-1].stem))
        for one in (uploader, world.uploader(Objects(str(mount)))):
            with pytest.raises(TierChanged, match="is missing"):
                one.cycle()
            lag = there(one.lag(0))
            assert lag.upload_segments == len(segments_in(world.folder)) - 1
        assert set(before) <= set(segments_in(world.folder))
        assert mount.exists() == is_mount_point_left
    assert list(mount.iterdir()) == []
    mount.rmdir()
    away.rename(mount)
    uploader.cycle()
    assert len(segments_in(world.folder)) == 1
    lag = there(uploader.lag(0))
    assert lag.upload_segments == 0


def test_another_tier_in_the_place_is_not_written_to(
    world: World, emptied: Objects, tier_place: str
) -> None:
    marker = json.dumps({"version": 1, "identity": "0" * 32}).encode()
    emptied.create(MARKER, marker)
    with pytest.raises(TierChanged, match="has the identity 0000"):
        world.uploader(Objects(tier_place)).cycle()
    assert set(emptied.names("")) == {MARKER}


@pytest.mark.parametrize("data", [b"{", b"[" * 1000, b'{"version": 1, "identity": "\\ud800"}'])
def test_a_marker_that_makes_no_sense_is_reported(
    world: World, emptied: Objects, tier_place: str, data: bytes
) -> None:
    emptied.create(MARKER, data)
    with pytest.raises(TierDamaged, match=MARKER):
        world.uploader(Objects(tier_place)).cycle()


def test_reading_a_tier_that_is_gone_leaves_nothing_out_silently(
    world: World, emptied: Objects, tier_place: str
) -> None:
    uploader = world.uploader(Objects(tier_place))
    with pytest.raises(TierChanged), TierSource(uploader.tier, uploader.state.segments[0]).open():
        pass


DAMAGED = [
    pytest.param(data, id=f"{number}")
    for number, data in enumerate(
        [
            b"",
            b"{",
            b'{"version": 9}',
            b'{"version": 1, "segments": 1}',
            b"[" * 100_000,
            b'{"version": 1, "place": ' + b"[" * 900 + b"]" * 900 + b"}",
            b'{"version": 1, "place": "\\ud800"}',
        ]
    )
]


@pytest.mark.slow
@pytest.mark.parametrize("data", DAMAGED)
def test_a_damaged_state_is_set_aside_and_its_log_begun_under_another_number(
    world: World, tier_place: str, data: bytes
) -> None:
    world.write()
    world.uploader(Objects(tier_place), local_s=3600).cycle()
    path = state_path(world.folder, canonical(tier_place))
    path.write_bytes(data)
    uploader = world.uploader(Objects(tier_place), log="7")
    assert uploader.set_aside is not None
    assert uploader.set_aside.kept is not None
    assert uploader.set_aside.kept.read_bytes() == data
    uploader.cycle()
    again = world.uploader(Objects(tier_place), log="8")
    assert again.state == uploader.state
    assert again.state.log == "7"
    assert again.set_aside is None


def test_a_damaged_state_does_not_let_segments_go_to_a_tier_that_is_gone(
    world: World, emptied: Objects, tier_place: str
) -> None:
    state_path(world.folder, canonical(tier_place)).write_bytes(b"{")
    before = segments_in(world.folder)
    for log in ("7", "8"):
        with pytest.raises(TierChanged, match="was damaged"):
            world.uploader(Objects(tier_place), log=log).cycle()
    assert segments_in(world.folder) == before
    assert emptied.names("") == {}
