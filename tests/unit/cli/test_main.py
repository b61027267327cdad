"""The entry point: exit codes, one line for an error, light imports, pipes that close.

What the commands do is in their own tests; `rgd serve` as a process is in tests/e2e.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rgd.cli import main, validate
from rgd.errors import ConfigError, Fault, RgdError
from rgd.version import __version__
from tests.support.log_maker import Usage, log_of
from tests.unit.cli.conftest import Rgd

HEAVY = ("pulsar", "_pulsar", "pyspark", "aiohttp", "pyarrow", "pandas", "numpy")
#: Not needed to show help either (typer itself brings pydantic).
UNNEEDED = (
    "rgd.config",
    "rgd.app",
    "rgd.views",
    "asyncio",
    "yaml",
    "structlog",
    "google.protobuf",
    "prometheus_client",
    "uvloop",
)


def process(*arguments: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "rgd", *arguments]
    return subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let `rgd validate` meet an error on its way."""

    def check(file: Path, **_: bool) -> str:
        raise error

    monkeypatch.setattr(validate, "_check", check)


def commands(command: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command and group of commands, by its words."""
    yield above, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, (*above, name))


COMMANDS = dict(commands(main.commands()))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(rgd: Rgd, words: tuple[str, ...]) -> None:
    outcome = rgd(*words, "--help")
    text = " ".join(outcome.out.split())
    assert outcome.code == 0
    for one in COMMANDS[words].params:
        assert one.help, one.name
        if one.default not in {None, False} and not one.is_eager:
            assert f"default: {one.default}" in text, one.name
    [example] = re.findall("Example:\n *rgd (.*)", outcome.out)
    named = tuple(shlex.split(example))
    assert named[: len(words)] == words
    # As the shell would, but nothing is run.
    leaf = max((path for path in COMMANDS if named[: len(path)] == path), key=len)
    COMMANDS[leaf].make_context("rgd", list(named[len(leaf) :]))


@pytest.mark.slow
def test_bash_completes_commands_options_and_values(tmp_path: Path) -> None:
    command = tmp_path / "rgd"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rgd "$@"\n')
    command.chmod(0o700)
    script = """
    complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rgd_completion rgd; echo "${COMPREPLY[@]}"; }
    eval "$(_RGD_COMPLETE=source_bash rgd)"
    complete_words rgd gro
    complete_words rgd groups set --publish-
    complete_words rgd why --kind ''
    """
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-ec", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == (
        "groups\n--publish-messages --publish-bytes\npublish dispatch\n",
        "",
    )


def test_a_letter_that_the_output_cannot_encode_is_escaped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    (tmp_path / "grün.yaml").write_text("groups: {}\n")
    done = process("validate", str(tmp_path / "grün.yaml"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "gr\\xfcn.yaml: ok" in done.stdout


def test_the_version_is_reported(rgd: Rgd) -> None:
    outcome = rgd("--version")
    assert (outcome.code, outcome.out) == (0, f"rgd {__version__}\n")


@pytest.mark.parametrize(
    "arguments",
    [(), ("nosuch",), ("--nosuch",), ("shares",), ("log",), ("validate",), ("report", "x")],
)
def test_asking_wrongly_is_2(rgd: Rgd, arguments: tuple[str, ...]) -> None:
    assert rgd(*arguments).code == 2


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (RgdError("it\nbroke   twice"), 1, "rgd: it broke twice\n"),
        (
            ConfigError(Fault("a.yaml", "b", "expected c"), Fault("d.yaml", "", "e")),
            2,
            "rgd: a.yaml: b: expected c\nrgd: d.yaml: e\n",
        ),
        (OSError(28, "No space left on device"), 1, "rgd: output: No space left on device\n"),
        # Ctrl-C.
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_an_error_is_a_line_for_each_fault_and_a_code(
    rgd: Rgd, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, told: str
) -> None:
    raising(monkeypatch, error)
    outcome = rgd("validate", "x")
    assert (outcome.code, outcome.out, outcome.err) == (code, "", told)


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    raising(monkeypatch, ZeroDivisionError("a bug"))
    monkeypatch.setattr(sys, "argv", ["rgd", "validate", "x"])
    with pytest.raises(ZeroDivisionError, match="a bug"):
        main.commands()()


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["serve", "--help"],
        ["report", "--help"],
        ["why", "--help"],
        ["groups", "--help"],
    ],
)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    script = (
        "import sys; from rgd.cli.main import run; sys.argv = ['rgd', *sys.argv[1:]]\n"
        "try: run()\n"
        f"finally: print([name for name in {HEAVY + UNNEEDED} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "printed", [["1", "--json"], [str(number) for number in range(2000)]], ids=["little", "much"]
)
def test_a_reader_that_has_left_is_no_reason_to_complain(printed: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = process("shares", "--quota", "1", "--wanted", *printed, stdout=writing)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.slow
def test_the_log_is_printed_as_far_as_somebody_reads(tmp_path: Path) -> None:
    log_of(tmp_path, "broker-1", (2000, Usage("gold", admitted=1, wanted=1, quota=100)))
    command = [sys.executable, "-m", "rgd", "log", "cat", "--json", str(tmp_path / "broker-1")]

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as printing:
        assert printing.stdout is not None
        assert printing.stderr is not None
        first = printing.stdout.readline()
        printing.stdout.close()
        complaints = printing.stderr.read()

    assert b'"index": 0' in first
    assert (printing.returncode, complaints) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("form", [["--json"], []])
@pytest.mark.slow
def test_a_full_disk_is_one_line_and_1(
    form: list[str], unbuffered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with Path("/dev/full").open("w") as full:
        done = process("shares", "--quota", "1", "--wanted", "1", *form, stdout=full.fileno())
    assert (done.returncode, done.stderr) == (1, "rgd: output: No space left on device\n")


def test_without_standard_streams_it_still_runs() -> None:
    command = [sys.executable, "-m", "rgd", "shares", "--quota", "1", "--wanted", "1"]
    script = "import os, sys; os.close(1); os.close(2); os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", script, *command], timeout=60, check=False)
    assert done.returncode == 0
