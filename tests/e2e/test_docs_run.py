"""Every page of the documentation as a story that is lived: its blocks, run in order and as printed.

A page has a folder of its own, with the tree's folders and a `.venv` in it, an empty home, no setting of this run's
environment, a network with a loopback only (so the printed ports are free, and nothing is downloaded), and an /etc that
it may write to.
The tags are explained in tests/support/pages.py. Not covered: prose, and what is tagged to be skipped.
"""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from tests.support import components
from tests.support.child_processes import start_dying_with_parent
from tests.support.pages import ROOT, Block, blocks, fits, needs, pages
from tests.support.pulsar_standalone import SMALL_JVM, ensure_distribution

PAGE_TIMEOUT_S = 1000
#: What a block printed that is shown where a page fails.
PRINTED_CHARS_MAX = 3000
#: Taken over from this run: where Java is, and what a CI says of itself.
_ENVIRONMENT = ("JAVA_HOME", "CI")
#: What a fresh clone does not have, or what is a page's own.
_OWN = {".venv", ".git", "rgd-log", "rgd-exchange", "demo-out"}

#: SIOCSIFFLAGS with IFF_UP | IFF_RUNNING: the loopback of a new network is down.
_LOOPBACK_UP = """
import fcntl, socket, struct
with socket.socket() as any_socket:
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh", b"lo", 0x41))
"""
_PREAMBLE = """
set -eo pipefail
trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT
# Repeats a command until it succeeds, /readyz until the policies table was read; the page has a timeout.
until_ok() {{ until said=$("$@" 2>&1) && [[ $said != *degraded* ]]; do sleep 0.1; done; }}
mount -t tmpfs tmpfs {etc} && mkdir {etc}/upper {etc}/work
mount -t overlay overlay -o lowerdir=/etc,upperdir={etc}/upper,workdir={etc}/work /etc
"""


def _parameters() -> list[ParameterSet]:
    made = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if any(block.kind in {"run", "serve", "file", "output"} for block in blocks(text)):
            # Its components are its own.
            marks = [pytest.mark.e2e, pytest.mark.xdist_group(page.name)]
            marks += [getattr(pytest.mark, name) for name in needs(text)]
            made.append(pytest.param(page, id=page.name, marks=marks))
    return made


@pytest.mark.parametrize("page", _parameters())
def test_a_page_runs_as_printed(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    components.embedded_broker()
    text = page.read_text(encoding="utf-8")
    found = blocks(text)
    folders = [tmp_path / name for name in ("page", "home", "printed", "etc")]
    for folder in folders:
        folder.mkdir()
    _furnish(folders[0])
    pulsar = [str(ensure_distribution() / "bin")] if "pulsar" in needs(text) else []
    path = [*pulsar, *os.environ["PATH"].split(":")]
    failed = _live(_script(found, *folders), tmp_path, [str(folders[0] / ".venv" / "bin"), *path])
    at = int((tmp_path / "at").read_text() or 0)
    assert not failed, f"{page.name}:{at}: {failed}\n{_printed(folders[2], found, at)}"
    assert _wrong(found, folders[2]) == [], page.name


def _furnish(folder: Path) -> None:
    """As a clone after `make setup`, so that this does nothing when a page runs it."""
    for name in {path.name for path in ROOT.iterdir()} - _OWN:
        (folder / name).symlink_to(ROOT / name)
    (folder / ".venv").mkdir()
    for name in ("bin", "lib", "pyvenv.cfg"):
        (folder / ".venv" / name).symlink_to(Path(sys.prefix) / name)
    (folder / ".venv" / ".installed").touch()


def _script(found: Sequence[Block], page: Path, home: Path, printed: Path, etc: Path) -> str:
    """What bash runs for a page: a step for each block, whose output goes to a file of its own."""
    lines = [shlex.join([sys.executable, "-c", _LOOPBACK_UP]), _PREAMBLE.format(etc=etc)]
    # Java does not take a user's home from $HOME.
    pulsar = f"PULSAR_EXTRA_OPTS='{SMALL_JVM} -Duser.home={home}'"
    lines += [f"cd {page}", f"export HOME={home} {pulsar}"]
    for block in found:
        lines += [f"echo {block.line} > {printed.parent}/at", _step(block, printed)]
    return "\n".join(lines) + "\n"


def _step(block: Block, printed: Path) -> str:
    out = printed / str(block.line)
    content = out.with_suffix(".block")
    content.write_text(block.text, encoding="utf-8")
    text = f"python {content}\n" if block.language == "python" else block.text
    if block.kind == "file":
        return f"mkdir -p $(dirname {block.argument}) && install -m 600 {content} {block.argument}"
    if block.kind == "serve":
        alive = "kill -0 $! || exit 1; sleep 0.1"
        return (
            f"(\n{text}) > {out} 2>&1 &\nuntil {block.argument} >/dev/null 2>&1; do {alive}; done"
        )
    if block.kind == "run" and block.argument:
        status = block.argument.removeprefix("exit ")
        return f"set +e; (\nset -e\n{text}) > {out} 2>&1; [ $? = {status} ] || exit 1; set -e"
    if block.kind in {"run", "sh"}:
        return f"{{\n{text}}} > {out} 2>&1"
    return ":"


def _live(script: str, folder: Path, path: Sequence[str]) -> str:
    """Why a page failed; empty if it did not."""
    file = folder / "page.sh"
    file.write_text(script, encoding="utf-8")
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    process = start_dying_with_parent(
        [*components.unshare(), "bash", file],
        environment=kept | {"PATH": ":".join(path), "LANG": "C.UTF-8", "TERM": "dumb"},
        log=folder / "bash.log",
    )
    try:
        status = process.wait(PAGE_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        status = -1
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    said = (folder / "bash.log").read_text(errors="replace")
    return f"ended with {status}: {said[-PRINTED_CHARS_MAX:]}" if status else ""


def _printed(printed: Path, found: Sequence[Block], at: int) -> str:
    """What the block that failed printed, and what runs beside the page."""
    shown = [block.line for block in found if block.line == at or block.kind == "serve"]
    files = [printed / str(line) for line in shown]
    return "\n".join(
        f"--- {file.name}:\n{file.read_text(errors='replace')[-PRINTED_CHARS_MAX:]}"
        for file in files
        if file.exists()
    )


def _wrong(found: Sequence[Block], printed: Path) -> list[str]:
    """Blocks that show another output than what ran before them printed."""
    wrong, last = [], ""
    for block in found:
        if block.kind in {"run", "sh"}:
            last = (printed / str(block.line)).read_text(errors="replace")
        elif block.kind == "output" and not fits(block, last):
            wrong.append(f"line {block.line} shows\n{block.text}but this was printed:\n{last}")
    return wrong
