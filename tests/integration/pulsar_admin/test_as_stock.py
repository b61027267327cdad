"""An unchanged `pulsar-admin` prints the same against rgd as against a stock Apache Pulsar.

The commands are in script.py and run through pulsar-shell, two of them through `pulsar-admin` itself;
what may differ is in differences.py. The daemon is `rgd serve`, alone, on the embedded broker.
Not covered: what the limits do to traffic; HTTP that pulsar-admin does not send
(tests/integration/http/test_as_pulsar.py); commands that rgd does not have.
"""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError

import pytest

from tests.integration.pulsar_admin.differences import Difference
from tests.integration.pulsar_admin.printed import refused, told
from tests.integration.pulsar_admin.script import (
    BROKER_LIMITS,
    BRONZE,
    GOLD,
    GROUPS,
    HUGE,
    NAMESPACE,
    SILVER,
    TENANT,
    TOPIC,
    Step,
    script,
)
from tests.support import components
from tests.support.pulsar_operator import Operator
from tests.support.pulsar_standalone import (
    CLUSTER,
    SMALL_JVM,
    PulsarStandalone,
    ensure_distribution,
    pulsar_shell,
)
from tests.support.served import served

PAGE = Path(__file__).parents[3] / "docs" / "pulsar-admin.md"
COMMAND_TIMEOUT_S = 600

LISTED_NAMES = (GROUPS, BROKER_LIMITS)


class Both(NamedTuple):
    """What a command printed, or should have."""

    stock: str
    rgd: str


@pytest.fixture
def stock(apache_pulsar: PulsarStandalone) -> Iterator[PulsarStandalone]:
    """The run's Pulsar with the script's namespace and topic, which are gone after."""
    operator, path = Operator(apache_pulsar), TOPIC.replace("://", "/")
    made = [
        (f"tenants/{TENANT}", {"allowedClusters": [CLUSTER]}),
        (f"namespaces/{NAMESPACE}", None),
        (path, None),
        # A topic without subscriptions is deleted after a minute.
        (f"{path}/subscription/audit", None),
    ]
    try:
        for name, body in made:
            operator.ask("PUT", name, body)
        yield apache_pulsar
    finally:
        # The groups are there only if a test has failed.
        groups = [f"resourcegroups/{name}" for name in (GOLD, SILVER, BRONZE, HUGE)]
        for name in (f"{path}?force=true", f"namespaces/{NAMESPACE}", f"tenants/{TENANT}", *groups):
            with suppress(HTTPError):
                operator.ask("DELETE", name)


@pytest.fixture
def rgd(tmp_path: Path) -> Iterator[str]:
    """The URL of a daemon without any policy."""
    components.embedded_broker()
    with served(tmp_path, "groups: {}\n") as url:
        yield url


@pytest.mark.pulsar
@pytest.mark.embedded
async def test_every_command_prints_what_it_prints_against_a_stock_pulsar(
    stock: PulsarStandalone, rgd: str
) -> None:
    steps = script()
    printed = await asyncio.gather(
        *(asyncio.to_thread(run, steps, url) for url in (stock.admin_url, rgd))
    )
    wrong = [
        f"{number}. {step.command}\n  stock: {both.stock!r}\n  rgd:   {both.rgd!r}\n  {fault}"
        for number, (step, both) in enumerate(zip(steps, map(Both, *printed), strict=True), 1)
        if (fault := fault_of(step, both))
    ]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(steps)}:", *wrong])


@pytest.mark.pulsar
@pytest.mark.embedded
async def test_pulsar_admin_itself_prints_and_ends_the_same(
    stock: PulsarStandalone, rgd: str
) -> None:
    for command, status, words in (
        (f"namespaces set-publish-rate {NAMESPACE} -m 5", 0, ""),
        (f"resourcegroups get {GOLD}", 1, refused("ResourceGroup does not exist")),
    ):
        ended = await asyncio.gather(
            *(asyncio.to_thread(pulsar_admin, url, command) for url in (stock.admin_url, rgd))
        )
        assert ended == [(status, words)] * 2, command


def test_every_difference_that_is_listed_has_a_command() -> None:
    assert {step.difference for step in script()} - {None} == set(Difference)


def test_every_verb_is_tried() -> None:
    expected = {f"resourcegroups {verb}" for verb in ("list", "get", "create", "update", "delete")}
    for verb in ("list", "get-all", "update", "delete"):
        expected.add(f"brokers {verb}-dynamic-config")
    for verb in ("set", "get", "remove"):
        expected.add(f"namespaces {verb}-resource-group")
        for scope in ("namespaces", "topicPolicies", "topics"):
            for kind in ("dispatch-rate", "subscription-dispatch-rate", "publish-rate"):
                expected.add(f"{scope} {verb}-{kind}")
            is_many = verb == "get" and scope != "topicPolicies"
            expected.add(f"{scope} {verb}-backlog-quota{'s' if is_many else ''}")
    assert {" ".join(step.command.split()[:2]) for step in script()} == expected


def test_the_page_has_the_table_of_differences() -> None:
    _, _, table = PAGE.read_text().partition(
        "| command | Pulsar 4.0.8 | rgd | why |\n| --- | --- | --- | --- |\n"
    )
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")]
    assert [row[0].removeprefix("| ") for row in rows] == [each.value for each in Difference]
    assert {len(row) for row in rows} == {4}


def run(steps: list[Step], url: str) -> list[str]:
    """What each step prints against a server; of a list, only the script's own names, in order."""
    printed = pulsar_shell([f"admin {step.command}" for step in steps], admin_url=url)
    return [
        "\n".join(sorted(name for name in answer.splitlines() if name.startswith(LISTED_NAMES)))
        if step.command in {"resourcegroups list", "brokers list-dynamic-config"}
        else told(answer)
        for step, answer in zip(steps, printed, strict=True)
    ]


def fault_of(step: Step, printed: Both) -> str:
    """What is wrong with what a step printed; nothing, if nothing is."""
    if step.difference is None:
        return "" if printed.stock == printed.rgd else "differs and is not listed"
    if printed.stock == printed.rgd:
        return f"is listed and does not differ: {step.difference.value}"
    said = Both(step.stock, step.rgd)
    return "" if printed == said else f"differs in another way than listed: {said}"


def pulsar_admin(url: str, command: str) -> tuple[int, str]:
    """Run `pulsar-admin`: the exit code, and what it printed."""
    binary = ensure_distribution() / "bin" / "pulsar-admin"
    environment = {name: value for name, value in os.environ.items() if "PULSAR" not in name}
    done = subprocess.run(
        [binary, "--admin-url", url, *command.split()],
        env=environment | {"PULSAR_EXTRA_OPTS": SMALL_JVM},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
    )
    return done.returncode, told(done.stdout.strip())
