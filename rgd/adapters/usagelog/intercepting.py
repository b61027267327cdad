"""Calls the operator's own interceptors (PIP-70).

Law: whatever one raises is an error of that entry alone. An OSError of its own is none of the log's disk, which would be
tried again; SystemExit would end the log's thread.
"""

from collections.abc import Sequence

from rgd.ports.usagelog import BrokerEntryMetadataInterceptor
from rgd.wire.frame import check_own_fields


def added_by(
    owns: Sequence[BrokerEntryMetadataInterceptor], timestamp_ms: int | None, index: int | None
) -> bytes:
    """The fields that own interceptors add to an entry.

    Raises:
        RuntimeError: one of them failed.
    """
    try:
        return b"".join(check_own_fields(own.intercept(timestamp_ms, index)) for own in owns)
    except BaseException as error:
        raise RuntimeError(f"an own interceptor failed: {error!r:.200}") from error
