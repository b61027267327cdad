"""Child processes that do not outlive the thread that started them, on Linux.

How: a few lines of Python request Linux's parent-death signal and then become the program. `preexec_fn` would run Python
between fork and exec, beside other threads, and may deadlock.
"""

import os
import signal
import sys
from collections.abc import Sequence
from typing import Final

#: The parent may be gone before the request for the signal, so its pid is checked.
_DIE_WITH_PARENT: Final = """
import ctypes, os, sys
PR_SET_PDEATHSIG = 1
if ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(sys.argv[2])) != 0:
    sys.exit("prctl(PR_SET_PDEATHSIG) failed")
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[3], sys.argv[3:])
"""


def dying_with_parent(command: Sequence[str], by: signal.Signals = signal.SIGTERM) -> list[str]:
    """The command with which the kernel ends the program by a signal when the thread that starts it is gone.

    On other systems than Linux it is the same command.
    """
    if sys.platform != "linux":
        return [*command]
    launcher = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), str(int(by))]
    return [*launcher, *command]
