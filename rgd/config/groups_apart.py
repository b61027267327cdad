"""Reading a large groups file while an event loop goes on answering.

Law: no piece of work here holds the interpreter for more than a few milliseconds, whatever the file
has, so that `await asyncio.to_thread(load_groups_apart, path)` keeps no request waiting.

Parsing takes seconds of Python, and a thread that wants the interpreter all the while slows every
answer down. So a large file is read, checked and hashed by a process of its own (it runs `main`), which
tells the book in slices; here they are only put together. What is left are single calls over everything:
freeing the book of before (`let_go` does it in slices) and the collector looking at each of the new
values, which `_uncollected` keeps it from.
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

from rgd.config.groups import book_hash, load_groups
from rgd.core.policies.book import PolicyBook
from rgd.core.policies.model import Attachments, Backlogs, Limits
from rgd.errors import ConfigError, Fault

#: A file up to this size is read by the caller's own thread: it is done before a process has begun.
SMALL_BYTES_MAX: Final = 128 << 10
#: How much the other process gives way.
_NICE: Final = 10
#: Entries that are told, put together or freed in one call.
SLICE: Final = 64

#: The parts of a book that have an entry for each name.
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
#: What is indexed of them: an entry for each group or tenant.
_INDEXED: Final = ("index.tenants", "index.namespaces", "index.topics", "index.existing")
#: What else the other process tells: values that entries point to, the end, or what is wrong instead.
_VALUES: Final = "values"
_END: Final = "end"
_FAULTS: Final = "faults"


@dataclass(frozen=True, slots=True)
class LoadedGroups:
    """A groups file as it was read."""

    book: PolicyBook
    #: `book_hash` of it.
    hash: int


class GroupsUnread(ConfigError):
    """The file could not be read; it may be fine, and another reading of it may succeed."""


class Reading:
    """One reading of a groups file, which another thread may end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def begin(self, process: "subprocess.Popen[bytes]") -> None:
        """The process that reads has begun."""
        with self._lock:
            self._process = process
            if self._is_stopped:
                process.kill()

    def stop(self) -> None:
        """End it: nobody waits for what it reads any more."""
        with self._lock:
            self._is_stopped = True
            if self._process is not None:
                self._process.kill()


def load_groups_apart(path: Path, reading: Reading | None = None) -> LoadedGroups:
    """Read a groups file; to be called in a thread.

    Args:
        path: the file.
        reading: by which another thread may end this.

    Raises:
        GroupsUnread: this process or the one that reads lacks something, whatever is in the file.
        ConfigError: the file cannot be used; carries every fault.
    """
    try:
        return _loaded(path, reading)
    except OSError as exc:
        expected = f"expected to be read; the process that does could not be begun: {exc}"
        raise GroupsUnread(Fault(str(path), "", expected)) from exc


def _loaded(path: Path, reading: Reading | None) -> LoadedGroups:
    try:
        is_small = path.stat().st_size <= SMALL_BYTES_MAX
    except OSError:
        is_small = True  # It says what is wrong, in one place.
    if is_small:
        try:
            book = load_groups(path)
        except ConfigError as error:
            if isinstance(error.__cause__, OSError):
                raise GroupsUnread(*error.faults) from error
            raise
        return LoadedGroups(book, book_hash(book))
    # The very modules that run here, wherever they came from; nothing of the present folder.
    script = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import main; main()"
    command = [sys.executable, "-P", "-c", script, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: S603 -- our own interpreter and module
        assert process.stdout is not None
        if reading is not None:
            reading.begin(process)
        try:
            return _put_together(process.stdout)
        except (EOFError, pickle.UnpicklingError) as exc:
            expected = f"expected to be read; the process that did ended with {process.wait()}"
            raise GroupsUnread(Fault(str(path), "", expected)) from exc


def let_go(books: list[PolicyBook]) -> None:
    """Empty a list that holds the last references to books, freeing what is in them in slices.

    To be called in a thread. Where somebody else still has a book, it stays as it is.
    """
    parts = [attrgetter(part)(book) for book in books for part in _PARTS + _INDEXED]
    books.clear()
    while parts:
        held = [*_slices(parts[-1]), *_slices(parts[-1].values())]
        # The dict goes here; its keys and values are still held.
        parts.pop()
        while held:
            held.pop()


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the collector from looking at what is made meanwhile, and from then on.

    Policies are values without cycles, so there is nothing in them to collect; a full collection over
    300,000 of them holds the interpreter for 50 ms and more. Garbage of others that is in a cycle just
    then stays for good: what a process leaves in about a second, once a reload.
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


def _put_together(told: IO[bytes]) -> LoadedGroups:
    # Nothing comes before everything is checked, and until then the collector may go on.
    first = pickle.load(told)  # noqa: S301 -- from our own process
    with _uncollected():
        return _taken(chain([first], _rest(told)))


def _rest(told: IO[bytes]) -> Iterator[tuple[str, Any]]:
    while True:
        yield pickle.load(told)  # noqa: S301 -- from our own process


def _taken(told: Iterable[tuple[str, Any]]) -> LoadedGroups:
    parts: dict[str, dict[Any, Any]] = {part: {} for part in _PARTS}
    values: list[Any] = []
    for what, said in told:
        if what == _FAULTS:
            raise ConfigError(*said)
        if what == _VALUES:
            values.extend(said)
        elif what == _END:
            broker, hash_of_book = said
            return LoadedGroups(_book_of(parts, broker), hash_of_book)
        else:
            names, places = said
            parts[what].update(zip(names, map(values.__getitem__, places), strict=True))
    raise EOFError  # Without an end it is as good as torn.


def _book_of(parts: dict[str, dict[Any, Any]], broker: Any) -> PolicyBook:
    return PolicyBook(
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


def _told(path: Path) -> Iterator[tuple[str, Any]]:
    """What the other process says, in order."""
    try:
        book = load_groups(path)
    except ConfigError as error:
        yield _FAULTS, error.faults
        return
    end = (book.limits.broker, book_hash(book))
    # By identity: what is one object there is to be one object here.
    place_of: dict[int, int] = {}
    for part in _PARTS:
        for entries in _slices(attrgetter(part)(book).items()):
            new = {id(value): value for _, value in entries if id(value) not in place_of}
            yield _VALUES, list(new.values())
            place_of.update(zip(new, range(len(place_of), len(place_of) + len(new)), strict=True))
            yield (
                part,
                ([name for name, _ in entries], [place_of[id(value)] for _, value in entries]),
            )
    yield _END, end


def _slices(entries: Iterable[Any]) -> Iterator[list[Any]]:
    rest = iter(entries)
    while some := list(islice(rest, SLICE)):
        yield some


def main() -> None:
    """Tell what the file on the command line says."""
    # Nobody waits for it; requests do not wait for it either.
    os.nice(_NICE)
    gc.disable()
    for said in _told(Path(sys.argv[1])):
        pickle.dump(said, sys.stdout.buffer, pickle.HIGHEST_PROTOCOL)
    sys.stdout.buffer.flush()
