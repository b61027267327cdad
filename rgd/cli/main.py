"""The entry point: every command in one table, every error as one line and an exit code.

Law: 0 means done, 1 failed, 2 a usage error (options, settings, files); 130 after
Ctrl-C and 141 if the reader of a pipe left (`rgd log cat | head`), as in a shell. An `RgdError` is one line on
standard error and never a traceback. Any other exception is a bug, and its traceback is printed.

A new command is a module beside this one, one line below, and an example in `rgd.cli.examples`.
"""

import io
import os
import sys
from pathlib import Path
from typing import Annotated, cast

import typer
from typer.core import TyperGroup

from rgd.cli import demo, doctor, groups, log, probe, report, serve, shares, top, validate, why
from rgd.cli.examples import add_examples
from rgd.errors import ConfigError, RgdError
from rgd.text import printable
from rgd.version import __version__

EXIT_FAILED = 1
EXIT_ASKED_WRONGLY = 2
#: 128 plus the number of SIGPIPE, which ends other tools when their reader has left.
EXIT_UNREAD = 141

app = typer.Typer(
    name="rgd",
    help="The resource-group daemon: one cluster-wide quota, held by every broker together.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Without rich, whose tables cut off the names of options at 80 columns.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("serve")(serve.serve)
app.command("validate")(validate.validate)
app.command("shares", cls=shares.ManyValuesCommand)(shares.shares)
app.command("why")(why.why)
app.command("top")(top.top)
app.command("probe")(probe.probe)
app.command("doctor")(doctor.doctor)
app.add_typer(groups.app, name="groups")
app.command("report")(report.report)
app.command("demo")(demo.demo)
app.add_typer(log.app, name="log")


def _print_version(is_asked: bool) -> None:
    if is_asked:
        print(f"rgd {__version__}")
        raise typer.Exit


@app.callback()
def main(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Define the options before a command."""


def commands() -> TyperGroup:
    """All commands, with their examples and what completes them in a shell."""
    group = cast("TyperGroup", typer.main.get_command(app))
    add_examples(group)
    return group


def run() -> None:
    """Run the command that `sys.argv` names, and exit the process."""
    _open_missing_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names and bars may have letters that the terminal's encoding lacks.
        sys.stdout.reconfigure(errors="backslashreplace")
    is_reported = False
    stdout = sys.stdout
    try:
        commands()(prog_name="rgd")
    except SystemExit:
        if sys.stdout is stdout:
            raise
        # Typer wraps the stream after a broken pipe.
        sys.exit(EXIT_UNREAD)
    except ConfigError as error:
        for fault in error.faults:
            _complain(str(fault))
        sys.exit(EXIT_ASKED_WRONGLY)
    except RgdError as error:
        _complain(str(error))
        sys.exit(EXIT_FAILED)
    except OSError as error:
        # The operating system said no; mostly to standard output (a full disk).
        _complain(f"{error.filename or 'output'}: {error.strerror or error}")
        is_reported = True
        sys.exit(EXIT_FAILED)
    finally:
        _flush(is_reported=is_reported)


def _complain(message: str) -> None:
    """Print a message in one line."""
    print(f"rgd: {printable(' '.join(message.split()))}", file=sys.stderr)


def _open_missing_streams() -> None:
    """Replace missing standard streams with ones that discard everything."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 -- open till the end


def _flush(*, is_reported: bool) -> None:
    """Flush the buffers while a failure can still be reported."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # Python flushes again at exit, so redirect the stream to a file that cannot fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if is_reported:
            return
        if isinstance(error, BrokenPipeError):
            # A reader that left is no error.
            sys.exit(EXIT_UNREAD)
        _complain(f"output: {error.strerror}")
        sys.exit(EXIT_FAILED)
