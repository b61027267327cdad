"""`rgd serve` as a process of its own, on an embedded exchange: what a client or a fuzzer meets."""

import os
import re
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.child_processes import end, start_dying_with_parent

UP_S = 300.0
#: Up to what follows: the line may be written in two.
_LISTENS = re.compile(r"listening=(\S+)\s")
_LOOK_S = 0.02


@contextmanager
def served(folder: Path, groups: str, **settings: str) -> Iterator[str]:
    """Run a daemon with these groups until the end; its address.

    Args:
        folder: where it keeps everything.
        groups: its groups file.
        settings: further ones, as environment variables without `RGD_`.
    """
    file, log = folder / "groups.yaml", folder / "serve.log"
    file.write_text(groups)
    environment = {
        **os.environ,
        "RGD_EXCHANGE__EMBEDDED_DIR": str(folder / "exchange"),
        "RGD_EXCHANGE__ROUND_MS": "200",
        **{f"RGD_{key}": value for key, value in settings.items()},
    }
    command: list[str | Path] = [
        *(sys.executable, "-m", "rgd", "serve", "--broker", "broker-1"),
        *("--listen", "127.0.0.1:0", "--groups", file, "--log-dir", folder / "log"),
    ]
    process = start_dying_with_parent(command, environment=environment, log=log)
    try:
        while not (found := _LISTENS.search(log.read_text())):
            assert process.poll() is None, log.read_text()
            time.sleep(_LOOK_S)
        url = found[1]
        while not _is_ready(url):
            assert process.poll() is None, log.read_text()
            time.sleep(_LOOK_S)
        yield url
        assert process.poll() is None, log.read_text()
    finally:
        end(process, UP_S)


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=UP_S) as answer:
            # Degraded while the policies table was not read yet.
            return b"degraded" not in answer.read()
    except urllib.error.HTTPError as error:
        error.close()
        return False
