"""Segments in a tier: the steps of uploading and deleting, each of them cut off and taken up again.

Law: whatever step is the last that was done, doing it all again loses nothing and doubles nothing.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from rgd.storage.errors import ObjectMissing, TierConflict, TierDamaged, TierDown
from rgd.storage.manifest import TieredSegment, decode_manifest, encode_manifest
from rgd.storage.objects import Objects
from rgd.storage.tier import DELETED, MANIFEST, MARKS, SEGMENT, LogTier, checksum_of

PREFIX = "usage/broker-1/0"
DATA = b"the bytes of a segment" * 100
MARK_BYTES = b"m" * 24


def segment(first_index: int = 0, data: bytes = DATA) -> TieredSegment:
    return TieredSegment(first_index, first_index + 9, 1000, 2000, len(data), checksum_of(data))


class FailingObjects(Objects):
    """Fails at one call, before or after it was done."""

    fails_at: int | None = None
    is_done = False
    calls = 0

    def _count(self, call: Callable[[], bool | None]) -> bool:
        self.calls += 1
        is_failing = self.calls - 1 == self.fails_at
        made = True if is_failing and not self.is_done else bool(call())
        if is_failing:
            raise TierDown("the tier failed")
        return made

    def create(self, name: str, data: bytes) -> bool:
        return self._count(lambda: Objects.create(self, name, data))

    def delete(self, name: str) -> None:
        self._count(lambda: Objects.delete(self, name))


@pytest.mark.parametrize("suffix", [SEGMENT, MANIFEST])
@pytest.mark.parametrize("size", [0, 1, 100])
def test_what_a_crash_tore_before_the_manifest_is_replaced(
    tier_place: str, suffix: str, size: int
) -> None:
    tier = LogTier(Objects(tier_place), PREFIX)
    whole = DATA if suffix == SEGMENT else encode_manifest(segment())
    tier.objects.create(tier.name_of(0, suffix), whole[:size])
    if suffix == MANIFEST and size:
        # A manifest that was begun is not empty only where somebody else wrote it.
        with pytest.raises(TierDamaged):
            tier.put(segment(), DATA, MARK_BYTES)
        return
    assert tier.list().segments == ()
    tier.put(segment(), DATA, MARK_BYTES)
    assert tier.list().segments == (segment(),)
    tier.verify(segment())


@pytest.mark.parametrize("there", [b"other", DATA + b"more"])
def test_only_the_beginning_of_the_same_bytes_is_replaced(tier_place: str, there: bytes) -> None:
    tier = LogTier(Objects(tier_place), PREFIX)
    tier.objects.create(tier.name_of(0, SEGMENT), there)
    with pytest.raises(TierConflict):
        tier.put(segment(), DATA, MARK_BYTES)
    assert tier.objects.read(tier.name_of(0, SEGMENT)) == there


def test_a_committed_segment_is_never_replaced(tier_place: str) -> None:
    tier = LogTier(Objects(tier_place), PREFIX)
    short = DATA[:100]
    tier.put(segment(data=short), short, b"")
    with pytest.raises(TierConflict):
        tier.put(segment(), DATA, MARK_BYTES)
    tier.verify(segment(data=short))


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("step", range(3))
def test_an_upload_that_failed_at_any_step_is_taken_up_again(
    tier_place: str, step: int, is_done: bool
) -> None:
    failing = FailingObjects(tier_place)
    failing.fails_at, failing.is_done = step, is_done
    with pytest.raises(TierDown):
        LogTier(failing, PREFIX).put(segment(), DATA, MARK_BYTES)
    tier = LogTier(Objects(tier_place), PREFIX)
    assert tier.list().segments == ((segment(),) if (step, is_done) == (2, True) else ())
    tier.put(segment(), DATA, MARK_BYTES)
    assert tier.list().segments == (segment(),)
    assert set(tier.objects.names("")) == {
        tier.name_of(0, suffix) for suffix in (SEGMENT, MARKS, MANIFEST)
    }


def test_another_segment_of_that_name_is_a_conflict_and_stays(tier_place: str) -> None:
    tier = LogTier(Objects(tier_place), PREFIX)
    tier.put(segment(), DATA, MARK_BYTES)
    other = b"another log" * 10
    with pytest.raises(TierConflict, match="nothing was overwritten"):
        tier.put(segment(data=other), other, MARK_BYTES)
    with pytest.raises(TierConflict, match="another segment"):
        tier.put(replace(segment(), last_ms=3000), DATA, MARK_BYTES)
    assert tier.objects.read(tier.name_of(0, SEGMENT)) == DATA


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("step", range(4))
def test_a_deletion_that_failed_at_any_step_is_finished(
    tier_place: str, step: int, is_done: bool
) -> None:
    LogTier(Objects(tier_place), PREFIX).put(segment(), DATA, MARK_BYTES)
    tier = LogTier(Objects(tier_place), PREFIX)
    tier.mark(0)
    tier.mark(0)
    assert (tier.list().segments, tier.list().marked) == ((), (segment(),))
    failing = FailingObjects(tier_place)
    failing.fails_at, failing.is_done = step, is_done
    with pytest.raises(TierDown):
        LogTier(failing, PREFIX).delete(0)
    listing = tier.list()
    # As long as anything is left, the mark is: nobody takes a half for a whole.
    assert listing.segments == ()
    is_gone = (step, is_done) == (3, True)
    assert (0 in listing.remnants or listing.marked != ()) is not is_gone
    tier.delete(0)
    assert tier.objects.names("") == {}


def test_damage_in_a_tier_is_found(tier_place: str) -> None:
    objects = Objects(tier_place)
    tier = LogTier(objects, PREFIX)
    for first_index, there in ((0, b"x" + DATA[1:]), (10, DATA[:-1]), (20, DATA + b"x")):
        objects.create(tier.name_of(first_index, SEGMENT), there)
        with pytest.raises(TierDamaged, match="manifest"):
            tier.verify(segment(first_index))
    with pytest.raises(ObjectMissing):
        tier.verify(segment(30))


def test_known_manifests_are_not_read_again(tier_place: str) -> None:
    tier = LogTier(Objects(tier_place), PREFIX)
    tier.put(segment(), DATA, MARK_BYTES)
    tier.objects.create(tier.name_of(0, DELETED) + ".other", b"not ours")
    known = replace(segment(), last_ms=4000)
    assert tier.list({0: known}).segments == (known,)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"version": 2}',
        encode_manifest(segment()).replace(b'"size": ', b'"size": -'),
        encode_manifest(segment()).replace(b'"last_index": 9', b'"last_index": true'),
        encode_manifest(segment(50)).replace(b'"last_index": 59', b'"last_index": 49'),
    ],
)
def test_what_is_no_manifest_is_damage(data: bytes) -> None:
    with pytest.raises(TierDamaged, match="name"):
        decode_manifest(data, "name")


def test_manifests_read_back() -> None:
    assert decode_manifest(encode_manifest(segment(7)), "name") == segment(7)
