"""What a member leaves behind in its process: no output, and a clean exit.

The client's own threads outlive `close` by a moment; they must not take the process down with them.
Not covered here: threads and descriptors of a process that lives on (tests/contract/exchange).
"""

import asyncio
import logging
import sys
from pathlib import Path

import pulsar
import pytest

from rgd.adapters.exchange.pulsar_client import PulsarSettings, connect
from tests.support.child_processes import free_ports
from tests.support.exchanges import embedded_exchange

pytestmark = pytest.mark.embedded

TIMEOUT_S = 180
MEMBER = Path(__file__).with_name("member.py")


async def _run_member(url: str) -> tuple[int | None, bytes]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        MEMBER,
        url,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
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
            ended = await asyncio.gather(*(_run_member(broker.url) for _ in range(4)))
            assert ended == [(0, b"")] * 4


async def test_the_clients_log_goes_to_pythons_logging_and_not_to_standard_output(
    capfd: pytest.CaptureFixture[str],
) -> None:
    heard = asyncio.Event()
    loop = asyncio.get_running_loop()

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "Connection refused" in record.getMessage() and record.levelno == logging.ERROR:
                loop.call_soon_threadsafe(heard.set)

    ear = Ear()
    logging.getLogger("rgd.pulsar").addHandler(ear)

    (port,) = free_ports(1)
    client = connect(f"pulsar://127.0.0.1:{port}", PulsarSettings(open_timeout_s=1))
    with pytest.raises(pulsar.PulsarException):
        await asyncio.to_thread(client.create_producer, "non-persistent://public/rgd/usage")
    async with asyncio.timeout(TIMEOUT_S):
        await heard.wait()
    await asyncio.to_thread(client.close)
    logging.getLogger("rgd.pulsar").removeHandler(ear)
    assert capfd.readouterr().out == ""
