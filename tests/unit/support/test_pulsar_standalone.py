"""What of running Apache Pulsar can be seen without running it: files, ports, processes.

Not covered: Pulsar itself. That it starts, serves, is killed and comes back is shown by the tests
with the marker `pulsar`, all of which use it.
"""

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from tests.support import child_processes, pulsar_standalone

ENDED_TIMEOUT_S = 60

#: A process whose end is to be seen. By the time it runs, the kernel knows on whose end to kill it.
PARENT = """
import os, sys
from pathlib import Path
from tests.support import child_processes
folder = Path(sys.argv[1])
program = child_processes.start_dying_with_parent(
    ["/bin/sh", "-c", f"echo up > {folder / 'is_up'}; exec sleep 60"],
    environment=dict(os.environ),
    log=folder / "log",
)
(folder / "is_up").read_text()
print(program.pid, flush=True)
sys.stdin.read()
"""

SHELL_OUTPUT = """\
Welcome to Pulsar shell!
  Admin URL: here

[1/3] Executing admin clusters list
standalone
[2/3] Executing admin resourcegroups get none
ResourceGroup does not exist

Reason: ResourceGroup does not exist
[3/3] Executing admin tenants create acme
Goodbye!
"""
SHELL_COMMANDS = [
    "admin clusters list",
    "admin resourcegroups get none",
    "admin tenants create acme",
]


def test_settings_replace_the_lines_of_the_same_name() -> None:
    text = "# bindAddress=comment\nbindAddress=0.0.0.0\nwebServicePort=8080\nbindAddresses="
    edited = pulsar_standalone.edited_conf(text, {"bindAddress": "127.0.0.1", "new": "a=b"})
    assert edited == (
        "# bindAddress=comment\nwebServicePort=8080\nbindAddresses=\nbindAddress=127.0.0.1\nnew=a=b\n"
    )


def test_shell_output_is_told_apart_by_command() -> None:
    assert pulsar_standalone.split_shell_output(SHELL_OUTPUT, SHELL_COMMANDS) == [
        "standalone",
        "ResourceGroup does not exist\n\nReason: ResourceGroup does not exist",
        "",
    ]


@pytest.mark.parametrize(
    "commands",
    [
        pytest.param(SHELL_COMMANDS[:2], id="more were run"),
        pytest.param([*SHELL_COMMANDS, "admin tenants list"], id="fewer were run"),
        pytest.param([*SHELL_COMMANDS[:2], "admin tenants list"], id="another was run"),
        pytest.param(SHELL_COMMANDS[::-1], id="another order"),
    ],
)
def test_shell_output_of_other_commands_is_an_error(commands: list[str]) -> None:
    with pytest.raises(RuntimeError, match="did not run"):
        pulsar_standalone.split_shell_output(SHELL_OUTPUT, commands)


@pytest.mark.parametrize("command", ["", "  ", "admin tenants list\nadmin clusters list"])
def test_shell_refuses_what_is_not_one_command(command: str) -> None:
    with pytest.raises(ValueError, match="not one command"):
        pulsar_standalone.pulsar_shell([command], admin_url="http://127.0.0.1:1")


def test_free_ports_differ_and_can_be_bound() -> None:
    ports = child_processes.free_ports(20)
    assert len(set(ports)) == 20
    for port in ports:
        with socket.create_server(("127.0.0.1", port)):
            pass


def test_ports_in_use_are_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(child_processes, "_PORTS", [server.getsockname()[1]] * 101)
        with pytest.raises(OSError, match="no 1 free ports"):
            child_processes.free_ports(1)


def test_distribution_in_the_cache_is_used_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked = tmp_path / "rgd" / f"pulsar-{pulsar_standalone.PULSAR_VERSION}"
    unpacked.mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pulsar_standalone.ensure_distribution() == unpacked
    assert list(unpacked.parent.iterdir()) == [unpacked]


def test_started_program_writes_to_the_log_and_has_only_the_given_environment(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    program = child_processes.start_dying_with_parent(
        ["/bin/sh", "-c", "echo out; echo err >&2; echo name=$NAME home=$HOME"],
        environment={"NAME": "given"},
        log=log,
    )
    assert program.wait(ENDED_TIMEOUT_S) == 0
    assert log.read_text() == "before\nout\nerr\nname=given home=\n"


def test_started_program_leads_its_group_and_outlives_the_thread_that_started_it(
    tmp_path: Path,
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    is_up = tmp_path / "is_up"
    os.mkfifo(is_up)

    def start() -> None:
        program = child_processes.start_dying_with_parent(
            ["/bin/sh", "-c", f"echo up > {is_up}; exec sleep 60"],
            environment=dict(os.environ),
            log=tmp_path / "log",
        )
        started.append(program)
        is_up.read_text()  # by now the kernel knows on whose end to kill it

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    (program,) = started
    try:
        with pytest.raises(subprocess.TimeoutExpired):  # it would be killed at once
            program.wait(0.5)
        assert os.getpgid(program.pid) == program.pid != os.getpgrp()
    finally:
        program.kill()
        program.wait(ENDED_TIMEOUT_S)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a child with its parent")
def test_started_program_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "is_up")
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, tmp_path],
        cwd=Path(pulsar_standalone.__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as parent:
        assert parent.stdout is not None
        program = psutil.Process(int(parent.stdout.readline()))
        assert program.is_running()
        parent.kill()
    try:
        program.wait(ENDED_TIMEOUT_S)
    finally:
        if program.is_running():
            program.kill()
