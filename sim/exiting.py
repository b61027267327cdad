"""How a command of the simulator ends: with its exit code, and quietly if nobody reads on.

`python -m sim --list | head` closes the pipe before all is printed. A Unix tool is then ended by SIGPIPE,
which a shell shows as 141; the same code here, and no traceback.
"""

import os
import sys
from collections.abc import Callable
from typing import Final, NoReturn

#: 128 and the number of SIGPIPE.
EXIT_UNREAD: Final = 141


def exit_with(main: Callable[[], int]) -> NoReturn:
    """Run a command, and end the process with its exit code."""
    code: int | str | None
    try:
        try:
            code = main()
        except SystemExit as asked:
            # argparse ends so, when it printed its help or was asked wrongly.
            code = asked.code
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more at exit: let it do so where nothing can fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = EXIT_UNREAD
    sys.exit(code)
