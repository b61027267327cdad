"""`rgd serve`: merge the settings, then run the daemon.

`rgd.cli.setup` has the options, which override the other three sources of settings (`rgd.config.load`). `rgd.app.planes` runs
the daemon. Nothing is opened before all settings are checked.
"""

# ruff: noqa: PLC0415 -- commands import what does the work themselves, so that --help stays fast

import os

from rgd.cli.setup import Setup, set_up


@set_up
def serve(*, setup: Setup) -> None:
    """Run the daemon until SIGTERM."""
    # Before numpy is loaded. It asks for huge pages, and the kernel clears one of 2 MiB at its first use: a slice that
    # reaches new pages of many columns at once held the event loop for 18 ms, where 4 KiB pages hold it for under 1.
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
    settings = setup.load()
    from rgd.app.planes import serving

    serving.serve(settings, insecure=setup.insecure, say=lambda line: print(line, flush=True))
