"""What a member leaves behind in its process: no output, and a clean exit.

The client's own threads outlive `close` by a moment; they must not take the process down with them.
Not covered here: threads and descriptors of a process that lives on (tests/contract/exchange).
"""

import asyncio
import json
import logging
import sys
from pathlib import Path

import pulsar
import pytest

from rgd.adapters.exchange.pulsar_client import PulsarSettings, connect
from tests.support.child_processes import free_ports
from tests.support.exchanges import embedded_exchange
from tests.support.policy_tables import until

pytestmark = pytest.mark.embedded

TIMEOUT_S = 180
MEMBER = Path(__file__).with_name("member.py")
#: What rgd and the client log in a daemon's process.
LINES = """
from rgd.adapters.exchange import pulsar_log
from rgd.app.logs import configure_logs
configure_logs()
pulsar_log.CLIENT.error("attempt failed")
pulsar_log.log.info("%s: works again", "topic")
"""


async def _run(*arguments: str | Path) -> tuple[int | None, bytes]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    async with asyncio.timeout(TIMEOUT_S):
        printed, _ = await process.communicate()
    return process.returncode, printed


@pytest.mark.slow
async def test_a_process_that_leaves_and_ends_at_once_ends_well_and_printed_nothing(
    tmp_path: Path,
) -> None:
    async with embedded_exchange(tmp_path) as broker:
        for _ in range(4):
            ended = await asyncio.gather(*(_run(MEMBER, broker.url) for _ in range(4)))
            assert ended == [(0, b"")] * 4


async def test_the_clients_log_goes_to_pythons_logging_and_not_to_standard_output(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    (port,) = free_ports(1)
    client = connect(f"pulsar://127.0.0.1:{port}", PulsarSettings(open_timeout_s=1))
    with pytest.raises(pulsar.PulsarException):
        await asyncio.to_thread(client.create_producer, "non-persistent://public/rgd/usage")
    await until(
        lambda: any(
            record.levelno == logging.ERROR and "Connection refused" in record.getMessage()
            for record in caplog.records
        )
    )
    await asyncio.to_thread(client.close)
    assert capfd.readouterr().out == ""


async def test_a_daemon_logs_its_own_lines_about_pulsar_and_not_the_clients() -> None:
    _, printed = await _run("-c", LINES)
    (line,) = printed.splitlines()
    assert json.loads(line)["code"] == "pulsar_session_works"
