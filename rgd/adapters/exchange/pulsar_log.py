"""rgd's log about Pulsar, `rgd.pulsar`; passes the client's own to Python's logging as `rgd.pulsar.client`.

Law: the client writes nothing to standard output, and its threads never need the interpreter to log.
Why not its `logger=` argument with a Python logger: every line, also at DEBUG, would take the
interpreter's lock in the client's threads, and a client thread that ends together with the interpreter
aborts the process (3.13: 1 to 7 exits in 100 with code 134).
How: the client's file logger writes into a pipe, and a Python thread reads lines from it. The
client has one log for the whole process, and so has this module.
"""

import logging
import os
import re
import threading
from functools import cache
from typing import Any, Final

import pulsar

log: Final = logging.getLogger("rgd.pulsar")
#: What the client logs itself; the daemon silences it.
CLIENT: Final = logging.getLogger("rgd.pulsar.client")

#: The client's format: `2026-11-21 07:21:45.949 INFO  [140355] ClientImpl:812 | Closing ...`.
_LINE: Final = re.compile(r"\S+ \S+ (?P<level>[A-Z]+) +\[[^\]]*\] (?P<place>\S+) \| (?P<text>.*)")
_LEVELS: Final = {"INFO": logging.INFO, "WARN": logging.WARNING, "ERROR": logging.ERROR}
#: Longest line; a line without an end is logged at this length.
_LINE_BYTES_MAX: Final = 1 << 16


@cache
def client_log() -> Any:
    """The value for the client's `logger` argument; it uses the current level of `CLIENT`."""
    read_fd, write_fd = os.pipe()
    threading.Thread(target=_forward, args=(read_fd,), name="rgd-pulsar-log", daemon=True).start()
    is_verbose = CLIENT.isEnabledFor(logging.INFO)
    level = pulsar.LoggerLevel.Info if is_verbose else pulsar.LoggerLevel.Warn
    return pulsar.FileLogger(level, f"/dev/fd/{write_fd}")


def is_logged(count: int) -> bool:
    """True for the first, second, fourth, ... one, so that a flood of a topic does not flood the log."""
    return count.bit_count() == 1


def log_bug(topic: str, where: str, error: Exception) -> None:
    """Log an unexpected error with its traceback."""
    log.error("%s: internal error in %s", topic, where, exc_info=error)


def _forward(read_fd: int) -> None:
    rest = b""
    while data := os.read(read_fd, _LINE_BYTES_MAX):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            _log(line.decode(errors="replace"))
        if len(rest) > _LINE_BYTES_MAX:
            _log(rest.decode(errors="replace"))
            rest = b""


def _log(line: str) -> None:
    parts = _LINE.fullmatch(line)
    if parts is None:
        CLIENT.info("%s", line)
    else:
        CLIENT.log(
            _LEVELS.get(parts["level"], logging.INFO), "%s: %s", parts["place"], parts["text"]
        )
