"""Passes the Pulsar client's own log to Python's logging as `rgd.pulsar`.

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

LOGGER: Final = logging.getLogger("rgd.pulsar")

#: The client's format: `2026-11-21 07:21:45.949 INFO  [140355] ClientImpl:812 | Closing ...`.
_LINE: Final = re.compile(r"\S+ \S+ (?P<level>[A-Z]+) +\[[^\]]*\] (?P<place>\S+) \| (?P<text>.*)")
_LEVELS: Final = {"INFO": logging.INFO, "WARN": logging.WARNING, "ERROR": logging.ERROR}
#: Longest line; a line without an end is logged at this length.
_LINE_BYTES_MAX: Final = 1 << 16


@cache
def client_log() -> Any:
    """The value for the client's `logger` argument; it uses the current level of `rgd.pulsar`."""
    read_fd, write_fd = os.pipe()
    threading.Thread(target=_forward, args=(read_fd,), name="rgd-pulsar-log", daemon=True).start()
    is_verbose = LOGGER.isEnabledFor(logging.INFO)
    level = pulsar.LoggerLevel.Info if is_verbose else pulsar.LoggerLevel.Warn
    return pulsar.FileLogger(level, f"/dev/fd/{write_fd}")


def warn_of_some(count: int, text: str, *about: object) -> None:
    """Log the first, second, fourth, ... one, so that a flood of a topic does not flood the log."""
    if count.bit_count() == 1:
        LOGGER.warning(text, *about)


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
        LOGGER.info("%s", line)
    else:
        LOGGER.log(
            _LEVELS.get(parts["level"], logging.INFO), "%s: %s", parts["place"], parts["text"]
        )
