"""The options that say how a daemon is set up: of `rgd serve`, and of `rgd doctor`, which looks at the same."""

# ruff: noqa: PLC0415 -- the settings are imported by what loads them, so that --help stays fast

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rgd.cli.options import taking

if TYPE_CHECKING:
    from rgd.config.settings import Settings


@dataclass(frozen=True, slots=True)
class Setup:
    """What overrides the settings of file and environment."""

    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Process settings, YAML.")] = (
        None
    )
    broker: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The broker this daemon speaks for.",
            show_default="the host's name",
        ),
    ] = None
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Where to answer; port 0 takes a free one.",
            show_default="127.0.0.1:7700",
        ),
    ] = None
    exchange: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="`embedded`, or pulsar://HOST:PORT.", show_default="embedded"
        ),
    ] = None
    groups: Annotated[Path | None, typer.Option(metavar="FILE", help="The groups file.")] = None
    log_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the usage log.", show_default="rgd-log"),
    ] = None
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen beyond loopback without tokens.")
    ] = False

    def load(self) -> "Settings":
        """Merge the settings of all sources.

        Raises:
            ConfigError: carries every fault of every source.
        """
        from rgd.config.load import load_settings

        overrides = {
            "broker.name": self.broker,
            "http.listen": self.listen,
            "exchange.url": self.exchange,
            "policies.file": self.groups,
            "log.dir": self.log_dir,
        }
        return load_settings(self.config, os.environ, overrides, insecure=self.insecure)


#: Gives a command these options; it gets them as `setup`.
set_up = taking(Setup, "setup")
