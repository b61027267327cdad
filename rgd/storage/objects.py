"""Objects in a folder or an S3-compatible bucket, through obstore, whose only home this is.

Law: `create` never overwrites, and what it made is there whole; a look makes no folder; errors are those of
`rgd.storage.errors` and nothing else. Everything blocks, and nothing is tried again here unless `retries` says so: that is the
business of a caller who keeps a backoff of its own.

S3 settings (endpoint, region, credentials) come from the environment as every S3 client reads it
(`AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, ...), so no secret is in a file of rgd's.
"""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from rgd.errors import Unavailable
from rgd.storage.errors import ObjectMissing, TierDown, TierError, TierRefused

if TYPE_CHECKING:
    from obstore.store import LocalStore, S3Store

#: Longest request: a whole segment over a slow link.
TIMEOUT_S: Final = 300.0
CONNECT_TIMEOUT_S: Final = 10.0
#: Largest object that is created in one piece: a whole segment is in memory while it goes up.
OBJECT_BYTES_MAX: Final = 256 << 20
#: Of commands, which have nobody else that tries again; the pauses grow from 0.1 s, so they take some 3 s.
RETRIES: Final = 5

#: How a bucket and a folder refuse a range that begins where the object ends.
_NO_RANGE: Final = re.compile("416 Range Not Satisfiable|range was invalid")

_REMEDY: Final = "obstore is not installed: pip install '.[tier]' in rgd's source tree"


def is_url(place: str) -> bool:
    """Whether a place is named by a URL rather than by a path."""
    return "://" in place


def folder_of(place: str) -> Path | None:
    """The folder that a place names; None for a bucket.

    Raises:
        ValueError: it is neither a path, nor a `file://` or `s3://` URL.
    """
    fault = f"expected a folder, file:///PATH or s3://BUCKET[/PREFIX], got {place!r}"
    if not place or "\0" in place:
        raise ValueError(fault)
    if not is_url(place):
        return Path(place)
    parts = urlsplit(place)
    if parts.scheme == "file" and parts.netloc in {"", "localhost"} and parts.path:
        return Path(unquote(parts.path))
    if parts.scheme == "s3" and parts.netloc and not parts.query and not parts.fragment:
        return None
    raise ValueError(fault)


def canonical(place: str) -> str:
    """One text for all that name the same place: folders in full, buckets without a slash at the end.

    Raises:
        ValueError: it is neither a path, nor a `file://` or `s3://` URL.
    """
    folder = folder_of(place)
    return place.rstrip("/") if folder is None else str(folder.resolve())


def sync_path(path: Path) -> None:
    """Sync a file's bytes or a folder's names to disk.

    Raises:
        OSError: the sync failed.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def patient(place: str) -> "Objects":
    """The objects of a place, for commands that end with the first fault.

    Raises:
        ValueError, Unavailable, TierRefused: as `Objects`.
    """
    return Objects(place, retries=RETRIES)


class Objects:
    """The objects below one place, by name; names have `/` between their parts."""

    def __init__(
        self,
        place: str,
        *,
        timeout_s: float = TIMEOUT_S,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        retries: int = 0,
    ) -> None:
        """Nothing is asked yet.

        Args:
            place: a folder's path, `file:///PATH` or `s3://BUCKET[/PREFIX]`.
            timeout_s: of one request.
            connect_timeout_s: until a connection is made.
            retries: how often a request to a bucket that is busy or away is tried again, after growing pauses.

        Raises:
            ValueError: `place` is none of these.
            Unavailable: obstore is not installed.
            TierRefused: what the environment says of S3 cannot be used.
        """
        self.place = place
        self._folder = folder_of(place)
        self._timeouts = (timeout_s, connect_timeout_s)
        self._retries = retries
        self._opened: LocalStore | S3Store | None = None
        try:
            import obstore as obs  # noqa: PLC0415 -- 16 MB that only a tier needs
        except ImportError as error:
            raise Unavailable(_REMEDY) from error
        self._obs = obs

    def create(self, name: str, data: bytes) -> bool:
        """Make an object; False: there is one of that name already, which stays as it is.

        Raises:
            TierError: it could not be made, or it is not known whether it was.
        """
        with self._telling(name):
            try:
                store = self._store(creates=True)
                self._obs.put(store, name, data, mode="create", use_multipart=False)
            except self._obs.exceptions.AlreadyExistsError:
                return False
        self._sync(name)
        return True

    def replace(self, name: str, data: bytes) -> None:
        """Make an object in the place of what a crash left of it.

        Raises:
            TierError: it could not be made, or it is not known whether it was.
        """
        with self._telling(name):
            self._obs.put(self._store(creates=True), name, data, use_multipart=False)
        self._sync(name)

    def read(self, name: str) -> bytes:
        """A whole object.

        Raises:
            ObjectMissing, TierError: it cannot be read.
        """
        with self._telling(name):
            self._check(name)
            return bytes(self._obs.get(self._store(), name).bytes())

    def read_range(self, name: str, offset: int, size: int) -> bytes:
        """Bytes of an object; fewer where it ends before, none where it ends at `offset`.

        Raises:
            ObjectMissing, TierError: it cannot be read.
        """
        with self._telling(name):
            self._check(name)
            try:
                return bytes(self._obs.get_range(self._store(), name, start=offset, length=size))
            except self._obs.exceptions.GenericError as error:
                # Stores refuse a range that begins at the end, as each of an empty object does.
                if not _NO_RANGE.search(str(error)) or self.size(name) > offset:
                    raise
                return b""

    def size(self, name: str) -> int:
        """Bytes of an object.

        Raises:
            ObjectMissing, TierError: it cannot be asked for.
        """
        with self._telling(name):
            self._check(name)
            return self._obs.head(self._store(), name)["size"]

    def names(self, prefix: str) -> dict[str, int]:
        """The objects whose names begin with the parts of `prefix`, and their sizes in bytes.

        Raises:
            TierError: they cannot be listed.
        """
        with contextlib.suppress(ObjectMissing), self._telling(prefix):
            return {
                found["path"]: found["size"]
                for batch in self._obs.list(self._store(), prefix or None)
                for found in batch
            }
        return {}

    def delete(self, name: str) -> None:
        """Remove an object; one that is not there is fine.

        Raises:
            TierError: it could not be removed.
        """
        with contextlib.suppress(ObjectMissing), self._telling(name):
            self._obs.delete(self._store(), name)

    def _store(self, *, creates: bool = False) -> "LocalStore | S3Store":
        """The store, opened by the first that needs it: a folder may not be there yet.

        Only `creates` makes it, because a folder that is looked at may be a mount point.
        """
        if self._folder is not None and not creates and not self._folder.exists():
            raise FileNotFoundError(errno.ENOENT, "no such folder", str(self._folder))
        if self._opened is None:
            from obstore.store import LocalStore, S3Store  # noqa: PLC0415 -- as obstore itself

            if self._folder is not None:
                self._opened = LocalStore(self._folder.absolute(), mkdir=True)
            else:
                timeout_s, connect_timeout_s = self._timeouts
                self._opened = S3Store.from_url(
                    self.place,
                    client_options={
                        "timeout": timedelta(seconds=timeout_s),
                        "connect_timeout": timedelta(seconds=connect_timeout_s),
                        "allow_http": os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://"),
                    },
                    retry_config={"max_retries": self._retries},
                )
        return self._opened

    def _check(self, name: str) -> None:
        """Refuse what is no file of a folder: to open a FIFO waits for its writer, in a thread that nobody can stop."""
        if self._folder is None:
            return
        path = self._folder / name
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError(errno.EINVAL, "expected a regular file", str(path))

    @contextlib.contextmanager
    def _telling(self, name: str) -> Iterator[None]:
        """Turn obstore's errors into ours."""
        kinds = self._obs.exceptions
        try:
            yield
        except kinds.AlreadyExistsError:
            raise
        except (kinds.NotFoundError, FileNotFoundError) as error:
            raise ObjectMissing(f"{self._at(name)}: there is no such object") from error
        except (kinds.PermissionDeniedError, kinds.UnauthenticatedError, PermissionError) as error:
            raise TierRefused(f"{self._at(name)}: {_words(error)}") from error
        except (kinds.UnknownConfigurationKeyError, kinds.InvalidPathError, ValueError) as error:
            raise TierError(f"{self._at(name)}: {_words(error)}") from error
        except (kinds.BaseError, OSError) as error:
            raise TierDown(f"{self._at(name)}: {_words(error)}") from error
        except BaseException as error:
            # A panic in Rust is no `Exception`, and its class cannot be imported.
            if type(error).__name__ != "PanicException":
                raise
            raise TierError(
                f"{self._at(name)}: obstore failed: {_words(error)}; check AWS_ENDPOINT_URL"
            ) from error

    def _at(self, name: str) -> str:
        """A place in words."""
        return f"{self.place}: {name}" if name else self.place

    def _sync(self, name: str) -> None:
        """Force a file of a folder, and its name, to the disk: the local copy is dropped afterwards."""
        if self._folder is None:
            return
        path = self._folder / name
        try:
            sync_path(path)
            sync_path(path.parent)
        except OSError as error:
            raise TierDown(f"{self.place}: {path.name}: {_words(error)}") from error


def _words(error: BaseException) -> str:
    """The first line of what went wrong: what follows is a dump of the library's own state."""
    line = str(error).strip().partition("\n")[0].removeprefix("Generic S3 error: ")
    if "error sending request" in line:
        endpoint = os.environ.get("AWS_ENDPOINT_URL", "Amazon's endpoint (no AWS_ENDPOINT_URL)")
        line = f"{endpoint} cannot be reached: {line}"
    if "performing list request" in line and "404 Not Found" in line:
        # A listing is empty where there is nothing, so it is the bucket.
        return "there is no such bucket"
    return line or type(error).__name__
