"""Entries that are written together have the bytes of entries that are written one by one.

Not covered: what a reader makes of them (tests/unit/wire/test_frame.py).
"""

import shutil
import tempfile
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.adapters.usagelog.appender import TIMESTAMP_MAX, Appender, Pending
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.ports.usagelog import Fsync
from rgd.wire.errors import Malformed, Oversize
from rgd.wire.frame import METADATA_MAX, PAYLOAD_MAX, BrokerEntryMetadata, Entry, encode_entry
from rgd.wire.frame_runs import Stamps, consecutive, frame_run
from rgd.wire.segment import encode_stored

U64_MAX = (1 << 64) - 1

#: Close to where a varint needs another byte, and anywhere.
numbers = st.one_of(
    st.integers(0, 63).map(lambda bits: (1 << bits) - 2 if bits else 0),
    st.integers(0, U64_MAX - 20),
).map(lambda number: max(0, number))
payloads = st.lists(st.binary(max_size=40), min_size=1, max_size=8)


@given(
    payloads,
    st.tuples(numbers, numbers),
    st.lists(st.integers(0, U64_MAX), min_size=8, max_size=8),
    st.tuples(st.booleans(), st.booleans()),
    st.sampled_from([(), (("a", "ä"),)]),
    st.sampled_from([b"", b"\x40\x03"]),
)
def test_a_run_has_the_bytes_of_its_entries(
    payloads: list[bytes],
    firsts: tuple[int, int],
    times: list[int],
    added: tuple[bool, bool],
    properties: tuple[tuple[str, str], ...],
    unknown: bytes,
) -> None:
    (sequence_id, index), count = firsts, len(payloads)
    stamps = sorted(times)
    has_time, has_index = added
    framed = frame_run(
        "bröker",
        payloads,
        Stamps(
            consecutive(sequence_id, count),
            np.array(times[:count], np.uint64),
            np.array(stamps[:count], np.uint64) if has_time else None,
            consecutive(index, count) if has_index else None,
        ),
        properties=properties,
        unknown=unknown,
    )
    expected = [
        encode_stored(
            encode_entry(
                Entry(
                    "bröker",
                    sequence_id + place,
                    times[place],
                    payload,
                    properties,
                    BrokerEntryMetadata(
                        stamps[place] if has_time else None, index + place if has_index else None
                    )
                    if any(added)
                    else None,
                    unknown,
                )
            )
        )
        for place, payload in enumerate(payloads)
    ]
    entries = [
        "".join(pair) for pair in zip(*[iter(map(bytes.hex, framed.pieces))] * 2, strict=True)
    ]
    assert entries == [entry.hex() for entry in expected]
    assert framed.sizes.tolist() == list(map(len, expected))


def test_what_fits_no_entry_is_refused() -> None:
    one = consecutive(1, 1)
    with pytest.raises(Oversize):
        frame_run("b", [bytes(PAYLOAD_MAX + 1)], Stamps(one, one, one, one))
    with pytest.raises(Oversize):
        frame_run("b", [b""], Stamps(one, one, one, one), unknown=bytes(METADATA_MAX))
    for first in (-1, U64_MAX):
        with pytest.raises(Malformed):
            consecutive(first, 2)


#: Of the caller's clock from one entry to the next, and how many offers were lost between.
offers = st.lists(
    st.tuples(st.binary(max_size=60), st.integers(-3_000, 5_000), st.sampled_from([0, 0, 0, 2])),
    min_size=1,
    max_size=12,
)


def written(batches: list[list[Pending]], segment_bytes: int) -> dict[str, bytes]:
    """The files of a log that these were written to."""
    folder = Path(tempfile.mkdtemp())
    try:
        settings = UsageLogSettings(fsync=Fsync.NEVER, segment_bytes=segment_bytes, segment_age_s=8)
        appender = Appender(folder, settings, broker="b1")
        appender.resume()
        for batch in batches:
            appender.write(batch)
        appender.close()
        assert appender.settled == sum(map(len, batches))
        return {path.name: path.read_bytes() for path in folder.glob("0*")}
    finally:
        shutil.rmtree(folder)


@pytest.mark.slow
@given(offers, st.sampled_from([1, 150, 400, 1 << 20]), st.integers(1, 12))
def test_a_log_is_the_same_however_its_entries_came_together(
    offers: list[tuple[bytes, int, int]], segment_bytes: int, together: int
) -> None:
    times = accumulate((step for _, step, _ in offers), initial=1_795_234_300_000)
    ordinals = accumulate((1 + lost for _, _, lost in offers), initial=0)
    pendings = [
        Pending(payload, time, ordinal)
        for (payload, _, _), time, ordinal in zip(offers, times, ordinals, strict=False)
    ]
    by_one = written([[pending] for pending in pendings], segment_bytes)
    begins = range(0, len(pendings), together)
    assert written([pendings[at : at + together] for at in begins], segment_bytes) == by_one


def test_a_clock_at_its_end_stops_no_log() -> None:
    pendings = [
        Pending(b"x", time, at) for at, time in enumerate([TIMESTAMP_MAX, 0, TIMESTAMP_MAX])
    ]
    assert written([pendings], 1 << 20) == written([[one] for one in pendings], 1 << 20)
