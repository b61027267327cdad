"""What policies cost at a size: a groups file, its snapshot, its records in the table and on the wire.

    python bench/policies.py [--json] [--namespaces 100000] [--groups 1000]

A file with that many namespaces, each attached to a group and with a publish limit and a backlog quota of
its own, is parsed, checked and hashed; its snapshot becomes records and comes back from them; all records are
written as the table holds them, and read. Then it is read as a running daemon reads it, in a thread beside
an event loop that turns all the while, and freed by that loop.
A hold is processor time that other threads of this process took between two turns of the loop: an answer
waits that long, and other processes of this machine are not in it.
Not measured: the snapshot taken in by a broker's core, the network, answers meanwhile.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench.harness import Figures, run
from rgd.config.groups import load_groups
from rgd.core.policies.records import PolicyRecord, PolicyRecords, records_of
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.wire.policies import decode_policy, encode_policy, policies_hash

#: As the daemon sets it.
SWITCH_INTERVAL_S: Final = 0.0005

MB: Final = 1 << 20


def write_groups(path: Path, namespaces: int, groups: int) -> None:
    """Write a groups file where every namespace has everything a namespace can have."""
    names = [f"tenant-{number % 997}/namespace-{number}" for number in range(namespaces)]
    with path.open("w", encoding="utf-8") as file:
        file.write("groups:\n")
        file.writelines(
            f"  group-{number}: {{publish: {{messages: {number + 10}}}}}\n"
            for number in range(groups)
        )
        file.write("attach:\n  namespaces:\n")
        file.writelines(
            f"    {name}: group-{number % groups}\n" for number, name in enumerate(names)
        )
        file.write("limits:\n  namespaces:\n")
        file.writelines(
            f"    {name}: {{publish: {{messages: {number + 1}, bytes: 5e6}}}}\n"
            for number, name in enumerate(names)
        )
        file.write("backlog_quotas:\n  namespaces:\n")
        file.writelines(
            f"    {name}: {{size: {{limit_bytes: 1e9}}, age: {{limit_s: {number + 1}}}}}\n"
            for number, name in enumerate(names)
        )


def timed_s(work: Callable[[], object]) -> float:
    """Processor seconds of one pass."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


class Turning:
    """An event loop that turns as fast as it can, and what kept it from turning."""

    def __init__(self) -> None:
        self.longest_s = 0.0

    async def beside(self, work: Callable[[], object]) -> float:
        """Seconds that work takes in a thread, while the loop turns."""
        begun = time.perf_counter()
        task = asyncio.create_task(asyncio.to_thread(work))
        of_all, own = time.process_time(), time.thread_time()
        while not task.done():
            await asyncio.sleep(0)
            of_all_now, own_now = time.process_time(), time.thread_time()
            self.longest_s = max(self.longest_s, of_all_now - of_all - (own_now - own))
            of_all, own = of_all_now, own_now
        await task
        return time.perf_counter() - begun


def measure_alone(path: Path) -> Figures:
    """Each step by itself."""
    snapshots: list[PolicySnapshot] = []
    figures = {"parse_s": timed_s(lambda: snapshots.append(load_groups(path)))}
    figures["hash_s"] = timed_s(lambda: policies_hash(snapshots[0]))
    records: list[PolicyRecord] = []
    figures["records_of_s"] = timed_s(lambda: records.extend(records_of(snapshots[0], "b1")))
    table = PolicyRecords()
    figures["apply_s"] = timed_s(lambda: list(map(table.put, records)))
    figures["snapshot_ms"] = timed_s(table.snapshot) * 1000
    table.put(table.next(records[-1].key, None, "b1"))
    figures["snapshot_after_a_change_ms"] = timed_s(table.snapshot) * 1000
    written: list[tuple[str, bytes]] = []
    figures["encode_s"] = timed_s(
        lambda: written.extend((record.key, encode_policy(record)) for record in records)
    )
    figures["decode_s"] = timed_s(lambda: [decode_policy(key, data) for key, data in written])
    figures["records"] = len(records)
    figures["table_mb"] = sum(len(key) + len(data) for key, data in written) / MB
    return figures


async def measure_beside(path: Path) -> Figures:
    """Read as a daemon reads it, and freed as it frees the one before."""
    turning = Turning()
    snapshots: list[PolicySnapshot] = []
    thread_s = await turning.beside(lambda: snapshots.append(load_groups(path)))
    return {
        "thread_s": thread_s,
        "thread_longest_hold_ms": turning.longest_s * 1000,
        "free_ms": timed_s(snapshots.clear) * 1000,
    }


def peak_mb(path: Path) -> float:
    """Most memory of a process that does nothing but read a file, less that of one that reads none."""
    script = (
        "import pathlib, sys; from rgd.config.groups import load_groups\n"
        "if sys.argv[1]: kept = load_groups(pathlib.Path(sys.argv[1]))\n"
        # Linux's own figure: getrusage counts what the parent had before exec.
        "print(next(line.split()[1] for line in open('/proc/self/status') if 'VmHWM' in line))"
    )
    peaks_kb = [
        int(subprocess.check_output([sys.executable, "-c", script, argument]))
        for argument in (str(path), "")
    ]
    return (peaks_kb[0] - peaks_kb[1]) * 1024 / MB


def measure(options: argparse.Namespace) -> Figures:
    """All figures of one size."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "groups.yaml"
        write_groups(path, options.namespaces, options.groups)
        figures: dict[str, float] = {
            "namespaces": options.namespaces,
            "file_mb": path.stat().st_size / MB,
            **asyncio.run(measure_beside(path)),
            **measure_alone(path),
            "parse_peak_mb": peak_mb(path),
        }
    return {name: round(value, 3) for name, value in figures.items()}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--namespaces", type=int, default=100_000)
    parser.add_argument("--groups", type=int, default=1000)


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
