"""`rgd serve`: merge the settings, then run the daemon.

Options override the other three sources of settings (`rgd.config.load`). `rgd.app.wiring` assembles
the daemon. Nothing is opened before all settings are checked.
"""

# ruff: noqa: PLC0415 -- commands import what does the work themselves, so that --help stays fast
# ruff: noqa: PLR0913 -- a command's parameters are its options

import os
from pathlib import Path
from typing import Annotated

import typer


def serve(
    *,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Process settings, YAML.")
    ] = None,
    broker: Annotated[
        str | None, typer.Option(metavar="NAME", help="The broker this daemon speaks for.")
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Where to answer; port 0 takes a free one."),
    ] = None,
    exchange: Annotated[
        str | None, typer.Option(metavar="URL", help="`embedded`, or pulsar://HOST:PORT.")
    ] = None,
    groups: Annotated[Path | None, typer.Option(metavar="FILE", help="The groups file.")] = None,
    log_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the usage log.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen beyond loopback without tokens.")
    ] = False,
) -> None:
    """Run the daemon until SIGTERM."""
    # Before numpy is loaded. It asks for huge pages, and the kernel clears one of 2 MiB at its first use: a slice that
    # reaches new pages of many columns at once held the event loop for 18 ms, where 4 KiB pages hold it for under 1.
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
    from rgd.app import wiring
    from rgd.config.load import load_settings

    overrides = {
        "broker.name": broker,
        "http.listen": listen,
        "exchange.url": exchange,
        "policies.file": groups,
        "log.dir": log_dir,
    }
    settings = load_settings(config, os.environ, overrides, insecure=insecure)
    wiring.serve(settings, insecure=insecure, say=lambda line: print(line, flush=True))
