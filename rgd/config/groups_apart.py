"""Reads a large groups file in a separate process, so that the event loop keeps answering.

Law: no piece of work here holds the interpreter for more than a few milliseconds, whatever the size of the
file, so that `await asyncio.to_thread(load_groups_apart, path)` delays no request.

Parsing takes seconds of Python, and a thread that needs the interpreter all the time slows every
answer down. So a separate process (it runs `main`) reads, checks and hashes a large file, and
sends the policy snapshot in slices; this process only joins them. Two single calls over all values remain:
freeing the previous snapshot (`release` does it in slices) and the garbage collector's visit of all new
values, which `_uncollected` prevents.
"""

import gc
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, Final

from rgd.config.groups import load_groups, policies_hash
from rgd.core.policies.model import Attachments, Backlogs, Limits
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.errors import ConfigError, Fault

#: A file up to this size is read by the caller's own thread, because that is faster than starting a process.
SMALL_BYTES_MAX: Final = 128 << 10
#: The niceness of the other process.
_NICE: Final = 10
#: Entries that are sent, joined or freed in one call.
SLICE: Final = 64

#: The parts of a snapshot that have an entry for each name.
_PARTS: Final = (
    "groups",
    "attach.tenants",
    "attach.namespaces",
    "attach.topics",
    "limits.topics",
    "limits.subscriptions",
    "limits.namespaces",
    "limits.namespace_subscriptions",
    "limits.topic_subscriptions",
    "backlogs.namespaces",
    "backlogs.topics",
)
#: The index of these parts: an entry for each group or tenant.
_INDEXED: Final = ("index.tenants", "index.namespaces", "index.topics", "index.existing")
#: The other messages of the process: values that entries refer to, the end, or the faults instead.
_VALUES: Final = "values"
_END: Final = "end"
_FAULTS: Final = "faults"


@dataclass(frozen=True, slots=True)
class LoadedGroups:
    """The content of a groups file."""

    snapshot: PolicySnapshot
    #: `policies_hash` of it.
    hash: int


class GroupsUnread(ConfigError):
    """The file could not be read; it may be valid, and another attempt may succeed."""


class Reading:
    """One reading of a groups file, which another thread may stop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def begin(self, process: "subprocess.Popen[bytes]") -> None:
        """Register the process that reads."""
        with self._lock:
            self._process = process
            if self._is_stopped:
                process.kill()

    def stop(self) -> None:
        """Stop it, because its result is no longer needed."""
        with self._lock:
            self._is_stopped = True
            if self._process is not None:
                self._process.kill()


def load_groups_apart(
    path: Path, reading: Reading | None = None, small_bytes_max: int = SMALL_BYTES_MAX
) -> LoadedGroups:
    """Read a groups file; to be called in a thread.

    Args:
        path: the file.
        reading: allows another thread to stop this.
        small_bytes_max: a file of at most so many bytes is read by this process.

    Raises:
        GroupsUnread: this process or the reading one lacks a resource; the file may be valid.
        ConfigError: the file cannot be used; carries every fault.
    """
    try:
        return _loaded(path, reading, small_bytes_max)
    except OSError as exc:
        expected = f"expected to be read; the process for it could not be started: {exc}"
        raise GroupsUnread(Fault(str(path), "", expected)) from exc


def _loaded(path: Path, reading: Reading | None, small_bytes_max: int) -> LoadedGroups:
    try:
        is_small = path.stat().st_size <= small_bytes_max
    except OSError:
        is_small = True  # `load_groups` reports the error.
    if is_small:
        try:
            snapshot = load_groups(path)
        except ConfigError as error:
            if isinstance(error.__cause__, OSError):
                raise GroupsUnread(*error.faults) from error
            raise
        return LoadedGroups(snapshot, policies_hash(snapshot))
    # The same modules as in this process, from the same folders; nothing of the working directory.
    script = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import main; main()"
    command = [sys.executable, "-P", "-c", script, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603 -- our own interpreter and module
        assert process.stdout is not None
        if reading is not None:
            reading.begin(process)
        try:
            return _put_together(process.stdout)
        except (EOFError, pickle.UnpicklingError) as exc:
            expected = f"expected to be read; the process for it ended with {process.wait()}"
            raise GroupsUnread(Fault(str(path), "", expected)) from exc


def release(snapshots: list[PolicySnapshot]) -> None:
    """Empty a list with the last references to policy snapshots, and free their content in slices.

    To be called in a thread. A snapshot with other references stays unchanged.
    """
    parts = [attrgetter(part)(snapshot) for snapshot in snapshots for part in _PARTS + _INDEXED]
    snapshots.clear()
    while parts:
        held = [*_slices(parts[-1]), *_slices(parts[-1].values())]
        # This frees the dict; `held` still has its keys and values.
        parts.pop()
        while held:
            held.pop()


@contextmanager
def _uncollected() -> Iterator[None]:
    """Exclude the objects that are created meanwhile from garbage collection for good.

    Policies are values without cycles, so they never need collection, while a full collection over
    300,000 of them holds the interpreter for 50 ms and more. Unrelated cyclic garbage of
    that moment is never freed: about one second's garbage for each reload.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


# --- between the two processes: slices, each value once, and entries that point to theirs -------------


def _put_together(stream: IO[bytes]) -> LoadedGroups:
    # The first message comes after all checks; until then the collector may run.
    first = pickle.load(stream)  # noqa: S301 -- from our own process
    with _uncollected():
        return _taken(chain([first], _rest(stream)))


def _rest(stream: IO[bytes]) -> Iterator[tuple[str, Any]]:
    while True:
        yield pickle.load(stream)  # noqa: S301 -- from our own process


def _taken(stream: Iterable[tuple[str, Any]]) -> LoadedGroups:
    parts: dict[str, dict[Any, Any]] = {part: {} for part in _PARTS}
    values: list[Any] = []
    for part, payload in stream:
        if part == _FAULTS:
            raise ConfigError(*payload)
        if part == _VALUES:
            values.extend(payload)
        elif part == _END:
            broker, hash_of_snapshot = payload
            return LoadedGroups(_snapshot_of(parts, broker), hash_of_snapshot)
        else:
            names, indices = payload
            parts[part].update(zip(names, map(values.__getitem__, indices), strict=True))
    raise EOFError  # Without an end the stream is incomplete.


def _snapshot_of(parts: dict[str, dict[Any, Any]], broker: Any) -> PolicySnapshot:
    return PolicySnapshot(
        groups=parts["groups"],
        attach=Attachments(**_below("attach", parts)),
        limits=Limits(broker=broker, **_below("limits", parts)),
        backlogs=Backlogs(**_below("backlogs", parts)),
    )


def _below(section: str, parts: dict[str, dict[Any, Any]]) -> dict[str, Any]:
    return {
        name.partition(".")[2]: entries
        for name, entries in parts.items()
        if name.partition(".")[0] == section and "." in name
    }


def _messages(path: Path) -> Iterator[tuple[str, Any]]:
    """The messages of the other process, in order."""
    try:
        snapshot = load_groups(path)
    except ConfigError as error:
        yield _FAULTS, error.faults
        return
    end = (snapshot.limits.broker, policies_hash(snapshot))
    # By identity, so that one object there becomes one object here.
    index_of: dict[int, int] = {}
    for part in _PARTS:
        for entries in _slices(attrgetter(part)(snapshot).items()):
            new = {id(value): value for _, value in entries if id(value) not in index_of}
            yield _VALUES, list(new.values())
            index_of.update(zip(new, range(len(index_of), len(index_of) + len(new)), strict=True))
            yield (
                part,
                ([name for name, _ in entries], [index_of[id(value)] for _, value in entries]),
            )
    yield _END, end


def _slices(entries: Iterable[Any]) -> Iterator[list[Any]]:
    rest = iter(entries)
    while some := list(islice(rest, SLICE)):
        yield some


def main() -> None:
    """Send the content of the file on the command line."""
    # No caller waits for this process, so requests take precedence.
    os.nice(_NICE)
    gc.disable()
    for payload in _messages(Path(sys.argv[1])):
        pickle.dump(payload, sys.stdout.buffer, pickle.HIGHEST_PROTOCOL)
    sys.stdout.buffer.flush()
