"""What a daemon does with an embedded broker: ensure, say so in a line, supervise until SIGTERM.

A program, run by test_embedded_broker.py as `python daemon.py FOLDER`.
"""

import asyncio
import json
import signal
import sys
from pathlib import Path

from rgd.adapters.exchange.embedded import EmbeddedBroker


async def main(folder: Path) -> None:
    broker = EmbeddedBroker(folder)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    url = await broker.ensure()
    sys.stdout.write(json.dumps({"url": url, "pid": broker.pid}) + "\n")
    sys.stdout.flush()
    async with asyncio.TaskGroup() as group:
        supervising = group.create_task(broker.supervise())
        await stop.wait()
        supervising.cancel()
    await broker.stop()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
