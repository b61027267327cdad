"""Each example runs as it stands, against a daemon that runs, and is limited by it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import components
from tests.support.exchanges import embedded_exchange
from tests.support.served import served
from tests.tidy import tree

pytestmark = [pytest.mark.embedded, pytest.mark.slow]

#: Of 40 requests at once most are refused, and what an example took is back before the next one has started.
GROUPS = """\
groups:
  slow: {publish: {messages: 10}}
attach:
  namespaces: {acme/requests: slow}
"""
_PRINTED = re.compile(r"(\d+) of 40 let through, (\d+) refused")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    components.embedded_broker()
    with served(tmp_path_factory.mktemp("daemon"), GROUPS) as address:
        yield address


def run(url: str, name: str, *words: str, **environment: str) -> None:
    command, refused = [sys.executable, str(tree.ROOT / "examples" / name), *words], 0
    environ = {**os.environ, "RGD_URL": url, **environment}
    # All is let through where the daemon stood still for longer than the example's client waits.
    while refused == 0:
        ran = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        [counts] = _PRINTED.findall(ran.stdout)
        let_through, refused = map(int, counts)
        assert let_through > 0
        assert let_through + refused == 40


@pytest.mark.parametrize("words", [("asgi_app.py",), ("aiohttp_app.py", "--once")])
def test_the_application(url: str, words: tuple[str, ...]) -> None:
    run(url, *words)


async def test_the_pulsar_producer(url: str, tmp_path: Path) -> None:
    async with embedded_exchange(tmp_path / "exchange") as broker:
        run(url, "pulsar_producer.py", broker.url, TOPIC="persistent://public/default/eu")


def test_every_example_is_run_by_a_test() -> None:
    here = Path(__file__).read_text()
    names = [path.name for path in (tree.ROOT / "examples").glob("*.py")]
    assert [name for name in names if f'"{name}"' not in here] == []
