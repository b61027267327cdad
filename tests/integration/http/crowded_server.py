"""A server in a process that may open few files; run by test_descriptors.py.

Arguments: the limit of open files. Prints its port; then, for each line it reads, a JSON line of figures:
`errors`, how often the event loop was told that it could not accept, and `can_open`, whether the process
can still open files.
"""

import asyncio
import json
import os
import resource
import sys
from typing import Any

import uvloop

from rgd.adapters.http.settings import HttpSettings
from rgd.app.open_files import FILES_RESERVED, connections_room, raise_open_files
from tests.integration.http.door import metrics
from tests.support.whole_daemon import HttpServer
from tests.unit.adapters.http.small_daemon import SmallDaemon


async def main(connections_max: int) -> None:
    errors: list[Any] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: errors.append(context))
    settings = HttpSettings(port=0, connections_max=connections_max)
    async with HttpServer(SmallDaemon(), settings, metrics=metrics) as server:
        sys.stdout.write(f"{server.port}\n")
        sys.stdout.flush()
        while await loop.run_in_executor(None, sys.stdin.readline):
            told = {"errors": len(errors), "can_open": files_that_open()}
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()


def files_that_open() -> int:
    """How many more files can be opened, at most as many as are kept for the daemon."""
    opened: list[int] = []
    try:
        while len(opened) < FILES_RESERVED // 2:
            opened.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    for file in opened:
        os.close(file)
    return len(opened)


if __name__ == "__main__":
    soft, hard, careless = (int(argument) for argument in sys.argv[1:])
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    uvloop.run(main(careless or connections_room(raise_open_files())))
