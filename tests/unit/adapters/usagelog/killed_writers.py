"""Writers of one log after another that are killed at random moments; run by test_kills.py.

    python -m tests.unit.adapters.usagelog.killed_writers FOLDER KILLS SEED

Each child goes on with the log by an `Appender` whose disk writes parts of what it is given, is full now and
then, and fails to sync now and then. It says through a pipe how far the log is synced, and is killed. Then
the log is read: round N is entry N, all of them are whole and continuous, and none that was synced is missing.
Prints one line of JSON with what was met. Children are forked, because 80 interpreters take a minute.
"""

import errno
import json
import os
import random
import select
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from rgd.adapters.usagelog.appender import Appender, Pending
from rgd.adapters.usagelog.reader import DamagedEntry, read_entries
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.core.exchange.messages import RoundRecord
from rgd.wire.log_records import LogReader
from tests.support.columns import round_of

#: Kills of one log; then a fresh one begins, so that reading it all stays quick.
KILLS_A_LOG: Final = 8
#: Writers say how far they are so many times at most before they are killed, and live on for so long.
LINES_MAX: Final = 20
MORE_S: Final = 0.005
SETTINGS: Final = UsageLogSettings(segment_bytes=16 << 10)
T0: Final = 1_795_234_300_000

_fsync, _write = os.fsync, os.write


def round_at(number: int) -> RoundRecord:
    """The round of which entry `number` is the record."""
    count = 1 + number % 5
    groups = [f"group-{place}" for place in range(count)]
    return round_of(number, groups, np.full((count, 2), number, np.int64))


def break_the_disk(dice: random.Random) -> None:
    """Let this process's disk write parts, be full, and fail to sync."""

    def write(descriptor: int, data: memoryview) -> int:
        # A disk that is full takes a part first, and says so at the next try.
        if dice.random() < 0.05:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        is_cut = dice.random() < 0.4
        return _write(descriptor, data[: dice.randrange(1, len(data) + 1)] if is_cut else data)

    def fsync(descriptor: int) -> None:
        if dice.random() < 0.05:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        _fsync(descriptor)

    vars(os).update(write=write, fsync=fsync)


def write_until_killed(folder: Path, first: int, dice: random.Random, said: int) -> None:
    """Append rounds from number `first` on; say how far they are synced."""
    break_the_disk(dice)
    appender = Appender(folder, SETTINGS, broker="b1")
    waiting: list[Pending] = []
    number, settled = first, 0
    while True:
        while len(waiting) < dice.randrange(1, 6):
            waiting.append(Pending(round_at(number), T0 + number, number - first))
            number += 1
        try:
            if not appender.is_ready:
                appender.resume()
            appender.write(waiting)
            if dice.random() < 0.5:
                appender.sync()
        except OSError:
            pass
        del waiting[: appender.settled - settled]
        settled = appender.settled
        _write(said, b"%d\n" % appender.synced_index)


def kill_one(folder: Path, first: int, dice: random.Random) -> int:
    """Let a writer live for a while; answer with the last index that it said was synced."""
    hears, says = os.pipe()
    seed, lines, more_s = (
        dice.randrange(1 << 30),
        dice.randrange(LINES_MAX),
        dice.uniform(0, MORE_S),
    )
    child = os.fork()
    if child == 0:
        try:
            write_until_killed(folder, first, random.Random(seed), says)
        finally:
            os._exit(1)
    os.close(says)
    with os.fdopen(hears, "rb") as pipe:
        said = [pipe.readline() for _ in range(lines)]
        # Wherever it is by then: encoding, writing, syncing.
        select.select([hears], [], [], more_s)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), "the writer ended by itself"
        said += pipe.readlines()
    return max((int(line) for line in said if line.endswith(b"\n")), default=-1)


def check(folder: Path, synced_index: int) -> int:
    """Read a log; how many rounds are in it, all whole, in order and as they were written."""
    reader, count = LogReader(), 0
    for item in read_entries(folder):
        assert not isinstance(item, DamagedEntry), item
        assert item.entry.index == count
        record = reader.read(item.entry)
        assert isinstance(record, RoundRecord)
        # A sync that fails counts as a loss, which later records say.
        assert replace(record, lost=0) == round_at(count)
        count += 1
    assert count > synced_index, (count, synced_index)
    return count


def main(folder: str, kills: str, seed: str) -> None:
    """Kill writers and check their logs."""
    dice = random.Random(int(seed))
    entries = synced = count = 0
    for kill in range(int(kills)):
        log = Path(folder) / f"log-{kill // KILLS_A_LOG}"
        log.mkdir(exist_ok=True)
        first = count if kill % KILLS_A_LOG else 0
        said = kill_one(log, first, dice)
        count = check(log, said)
        synced += said >= first
        entries += count - first
    told = {"kills": int(kills), "lives_that_synced": synced, "entries": entries}
    sys.stdout.write(f"{json.dumps(told)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
