"""The limit of open files, and the part of it for HTTP connections.

Law: callers never take the descriptors of the usage log, the exchange and the probes.
The soft limit is raised to the hard one, as servers do; callers get the rest after the reserves.
"""

import resource
from contextlib import suppress
from typing import Final

from rgd.adapters.http.connection_limits import PROBES_RESERVED
from rgd.adapters.http.listening import BACKLOG

#: Reserved for the usage log, the exchange's sessions, pipes, certificates and the interpreter.
FILES_RESERVED: Final = 128

#: Reserved for each shard: 7 for its session, and as many while another one replaces it.
FILES_PER_SHARD: Final = 14

#: The highest limit that is requested, because more is never needed and some systems refuse "unlimited".
OPEN_FILES_MAX: Final = 1 << 20

#: The number of callers that are served with any limit of open files.
CONNECTIONS_MIN: Final = 16


def raise_open_files() -> int:
    """Raise the limit of open files as far as possible; returns the limit in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES_MAX)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return OPEN_FILES_MAX if soft == resource.RLIM_INFINITY else soft
    # A system may have a lower, hidden limit; then nothing changes.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def connections_room(open_files: int, shards: int = 1) -> int:
    """The number of ordinary connections for a limit of open files.

    The reserves include connections that were accepted at once and are not refused yet.

    Args:
        open_files: the limit.
        shards: how many topics this daemon may read beside `exchange.topic`; 1: none.
    """
    exchange = FILES_RESERVED + (FILES_PER_SHARD * shards if shards > 1 else 0)
    return max(CONNECTIONS_MIN, open_files - exchange - PROBES_RESERVED - BACKLOG)
