"""How many files this process may open, and how many of them HTTP connections may take.

Law: the usage log, the exchange and the probes never lack a descriptor because callers hold them all.
The soft limit is raised to the hard one, as servers do; what remains after the reserves is for callers.
"""

import resource
from contextlib import suppress
from typing import Final

from rgd.adapters.http.connection_limits import PROBES_RESERVED
from rgd.adapters.http.listening import BACKLOG

#: Kept for the usage log, the exchange's sessions, pipes, certificates and the interpreter.
FILES_RESERVED: Final = 128

#: More than this is never asked for: nobody counts so far, and some systems refuse "unlimited".
OPEN_FILES_MAX: Final = 1 << 20

#: Callers that are served however few files there may be.
CONNECTIONS_MIN: Final = 16


def raise_open_files() -> int:
    """Raise the limit of open files as far as may be; the limit in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES_MAX)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return OPEN_FILES_MAX if soft == resource.RLIM_INFINITY else soft
    # A system may have a lower limit that it does not tell of: then all stays as it was.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def connections_room(open_files: int) -> int:
    """How many ordinary connections so many files leave room for.

    Beside the reserves there is room for those that were accepted at once and are still to be refused.
    """
    return max(CONNECTIONS_MIN, open_files - FILES_RESERVED - PROBES_RESERVED - BACKLOG)
