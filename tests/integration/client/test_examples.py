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
    example = tree.ROOT / "examples" / name
    ran = subprocess.run(
        [sys.executable, example, *words],
        env={**os.environ, "RGD_URL": url, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found = _PRINTED.search(ran.stdout)
    assert found is not None, ran.stdout
    let_through, refused = map(int, found.groups())
    assert let_through > 0
    assert refused > 0
    assert let_through + refused == 40


def test_the_asgi_application(url: str) -> None:
    run(url, "asgi_app.py")


def test_the_aiohttp_application(url: str) -> None:
    run(url, "aiohttp_app.py", "--once")


async def test_the_pulsar_producer(url: str, tmp_path: Path) -> None:
    async with embedded_exchange(tmp_path / "exchange") as broker:
        run(url, "pulsar_producer.py", broker.url, TOPIC="persistent://public/default/eu")


def test_every_example_is_run_by_a_test() -> None:
    here = Path(__file__).read_text()
    names = [path.name for path in (tree.ROOT / "examples").glob("*.py")]
    assert [name for name in names if f'"{name}"' not in here] == []
