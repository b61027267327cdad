"""Usage logs as the daemons would have written them, out of what the members appended.

Law: `rgd log` and `rgd report` read them as any other: DIR/<broker>/<first index>.log, entries with
broker timestamp and continuous indexes, one segment a broker. Times are the world's, from a fixed
day on, so the same run writes the same bytes. Where a scenario has wrong wall clocks (`Deed.CLOCK`), the
broker's clock says so, and the broker timestamp never runs backwards, as in the daemon's writer.

The daemon's writer (`rgd.adapters.usagelog`) is an adapter with threads and syncing, which a
simulator may not import: the bytes themselves come from `rgd.wire`, as its do.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote

from rgd.core.units import NS_PER_MS
from rgd.wire.frame import BrokerEntryMetadata, Entry, encode_entry
from rgd.wire.record import RECORD_PROPERTIES, encode_record
from rgd.wire.record_parts import parts_of
from rgd.wire.segment import encode_stored, segment_name
from sim.cluster import Cluster
from sim.fault import Fault
from sim.member import Member

#: When every world begins: 2026-01-01T00:00:00Z, in milliseconds since 1970.
EPOCH_MS: Final = 1_767_225_600_000


def write_usage_logs(cluster: Cluster, folder: Path) -> int:
    """Write the logs of all members, those that crashed included; how many entries.

    Raises:
        OSError: a file cannot be written.
        FileExistsError: there is a log already.
    """
    count = 0
    for place, name in enumerate(cluster.names):
        members = [one for one in (*cluster.gone, *cluster.members) if one and one.name == name]
        clock = partial(_clock_ms, cluster.clock_faults, place)
        count += _write_log(folder / quote(name, safe=""), name, members, clock)
    return count


def _clock_ms(faults: Sequence[Fault], place: int, at_ns: int) -> int:
    """What the wall clock of a place says, in ms since 1970."""
    ahead_ns = sum(fault.clock_ahead_ns(place, at_ns) for fault in faults)
    return EPOCH_MS + (at_ns + ahead_ns) // NS_PER_MS


def _write_log(
    folder: Path, broker: str, members: list[Member], clock_ms: Callable[[int], int]
) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    index = stamp = 0
    with (folder / segment_name(0)).open("xb") as file:
        for member in members:
            for record, at_ns in zip(member.records, member.recorded_at, strict=True):
                told = clock_ms(at_ns)
                stamp = max(stamp, told)
                for part in parts_of(record):
                    entry = Entry(
                        producer_name=broker,
                        sequence_id=index,
                        publish_time=told,
                        payload=encode_record(part),
                        properties=RECORD_PROPERTIES,
                        broker=BrokerEntryMetadata(stamp, index),
                    )
                    file.write(encode_stored(encode_entry(entry)))
                    index += 1
    return index
