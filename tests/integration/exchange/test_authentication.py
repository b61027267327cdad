"""An Apache Pulsar with tokens, authorisation and TLS: who gets in, who is told what to mend.

Not covered here: certificates in place of tokens, and the admin API over https.
"""

import asyncio
import contextlib
import itertools
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from rgd.adapters.exchange.pulsar import PulsarExchange, PulsarSettings
from rgd.adapters.exchange.pulsar_table import PulsarPolicyStore
from rgd.adapters.stock.backlog_reader import StockBacklogReader
from rgd.adapters.stock.broker_list import StockBrokerList
from rgd.adapters.stock.client import StockClient
from rgd.adapters.stock.namespaces import SYSTEM_NAMESPACE
from rgd.app.clock import SystemClock
from rgd.app.doctor.exchange import admin
from rgd.app.doctor.findings import State, run_all
from rgd.config.backlog_settings import BacklogSettings
from rgd.config.load import load_settings
from rgd.config.plain_files import replace_file
from rgd.config.settings import ExchangeSettings
from rgd.core.backlog.model import TopicBacklog
from rgd.core.exchange.dialects import STOCK_TOPIC
from rgd.ports.exchange import ExchangeDown
from rgd.ports.stock import StockRefused
from tests.contract.exchange.backends import lost
from tests.support.exchanges import hears_itself
from tests.support.pulsar_operator import ensure_namespace
from tests.support.pulsar_standalone import CLUSTER, pulsar_shell
from tests.support.secured_pulsar import ADMIN, SecuredPulsar
from tests.support.whole_daemon import RgdDaemon, build

pytestmark = [pytest.mark.pulsar, pytest.mark.xdist_group("authentication")]

PAGE = Path(__file__).parents[3] / "docs" / "security.md"
TIMEOUT_S = 60
NAMESPACE = "public/rgd"
USAGE = f"non-persistent://{NAMESPACE}/usage"
POLICIES = f"persistent://{NAMESPACE}/policies"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredPulsar]:
    pulsar = SecuredPulsar(tmp_path_factory.mktemp("secured"))
    # What docs/security.md says that the daemon's role needs, and nothing more.
    commands = re.findall(r"^pulsar-(admin .*)$", PAGE.read_text(), re.MULTILINE)
    pulsar_shell(commands, admin_url=pulsar.pulsar.admin_url, token=pulsar.token(ADMIN))
    yield pulsar
    pulsar.close()


def rewrite(file: Path, text: str) -> None:
    """Put something else into a file, as whoever rotates secrets does: nobody reads half of it."""
    replace_file(file, text.encode(), 0o600)


@pytest.fixture
def token_file(secured: SecuredPulsar, tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.touch(0o600)
    file.write_text(f"{secured.token('rgd')}\n")
    return file


#: How to get in; patient, as a busy Pulsar needs it.
settings = partial(PulsarSettings, open_timeout_s=30, send_timeout_ms=30_000)


@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "tls"])
async def test_with_the_token_exchange_and_table_work(
    secured: SecuredPulsar, token_file: Path, is_tls: bool
) -> None:
    url = secured.tls_url if is_tls else secured.pulsar.service_url
    access = settings(token_file, tls_trust_certs=secured.cert if is_tls else None)
    member = PulsarExchange(url, USAGE, settings=access)
    table = PulsarPolicyStore(url, POLICIES, settings=access)
    await member.open()
    await hears_itself(member)
    await table.open()
    await table.put("group:gold", b"1")
    async with asyncio.timeout(TIMEOUT_S):
        assert ("group:gold", b"1") in await table.changes()
    await member.close()
    await table.close()


async def test_a_refused_daemon_names_the_setting_to_check(
    secured: SecuredPulsar, token_file: Path
) -> None:
    url = secured.pulsar.service_url
    for token in (None, secured.token("somebody-else"), "not.a.token"):
        if token is not None:
            rewrite(token_file, token)
        member = PulsarExchange(url, USAGE, settings=settings(token_file if token else None))
        with pytest.raises(ExchangeDown, match=r"exchange\.token_file") as raised:
            await member.open()
        assert token is None or token not in str(raised.value)
        await member.close()


@pytest.mark.parametrize(("granted", "missing"), [("produce", "consume"), ("consume", "produce")])
async def test_of_the_grants_that_the_docs_name_each_is_needed_and_named(
    secured: SecuredPulsar, token_file: Path, granted: str, missing: str
) -> None:
    secured.admin("POST", f"namespaces/{NAMESPACE}/permissions/only-{granted}", [granted])
    rewrite(token_file, secured.token(f"only-{granted}"))
    url, access = secured.pulsar.service_url, settings(token_file)
    expected = f"`{missing}` is missing: run pulsar-admin namespaces grant-permission {NAMESPACE} "
    for joins in (
        PulsarExchange(url, USAGE, settings=access),
        PulsarPolicyStore(url, POLICIES, settings=access),
    ):
        with pytest.raises(ExchangeDown, match=re.escape(expected)):
            await joins.open()
        await joins.close()


async def test_to_make_the_namespace_an_admin_of_the_tenant_is_enough(
    secured: SecuredPulsar,
) -> None:
    url = secured.pulsar.admin_url
    tenant = {"allowedClusters": [CLUSTER], "adminRoles": ["tenant-admin"]}
    secured.admin("PUT", "tenants/administered", tenant)
    with pytest.raises(ExchangeDown, match="tenants update administered --admin-roles"):
        await ensure_namespace(url, "administered/rgd", secured.token("rgd"))
    for _ in range(2):  # made, and found
        await ensure_namespace(url, "administered/rgd", secured.token("tenant-admin"))


def test_the_doctor_names_what_pulsar_refuses_and_nothing_where_it_lets_in(
    secured: SecuredPulsar, token_file: Path, tmp_path: Path
) -> None:
    admin_file = tmp_path / "admin-token"
    admin_file.touch(0o600)
    environment = {
        **os.environ,
        "RGD_EXCHANGE__URL": secured.tls_url,
        "RGD_EXCHANGE__TLS_CA": str(secured.cert),
        "RGD_EXCHANGE__TOKEN_FILE": str(token_file),
        "RGD_EXCHANGE__ADMIN_URL": secured.pulsar.admin_url,
        "RGD_EXCHANGE__ADMIN_TOKEN_FILE": str(admin_file),
        "RGD_LOG__DIR": str(tmp_path / "log"),
        "RGD_HTTP__LISTEN": "127.0.0.1:0",
    }

    def faults(
        *, role: str = "rgd", admin: str = ADMIN, namespace: str = NAMESPACE, **settings: str
    ) -> str:
        rewrite(token_file, secured.token(role))
        rewrite(admin_file, secured.token(admin))
        usage = f"non-persistent://{namespace}/usage"
        environ = environment | settings | {"RGD_EXCHANGE__TOPIC": usage}
        command = [sys.executable, "-m", "rgd", "doctor"]
        while True:
            done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
            if not re.search("no answer within|Timeout|timed out", done.stdout):
                break  # a busy Pulsar takes longer now and then than the doctor waits
        assert done.stderr == ""
        told = [line for line in done.stdout.splitlines() if line.startswith("fault")]
        assert done.returncode == bool(told), done.stdout
        return "\n".join(told)

    assert faults() == ""
    stranger = faults(role="somebody-else", admin="somebody-else")
    assert "check exchange.token_file" in stranger
    assert "set exchange.admin_token_file" in stranger
    # A daemon makes the namespace by itself, if it has an admin API.
    assert faults(role=ADMIN, namespace="public/none") == ""
    missing = faults(role=ADMIN, namespace="public/none", RGD_EXCHANGE__ADMIN_URL="")
    assert "the namespace public/none is missing: set exchange.admin_url" in missing


async def test_the_doctor_sees_pulsars_clock_and_whether_its_policies_can_be_followed(
    secured: SecuredPulsar, token_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = {"allowedClusters": [CLUSTER], "adminRoles": ["followed-admin"]}
    secured.admin("PUT", "tenants/followed", tenant)
    environment = {
        "RGD_EXCHANGE__URL": secured.pulsar.service_url,
        "RGD_EXCHANGE__ADMIN_URL": secured.pulsar.admin_url,
        "RGD_EXCHANGE__ADMIN_TOKEN_FILE": str(token_file),
        "RGD_EXCHANGE__TOPIC": "non-persistent://followed/rgd/usage",
        "RGD_POLICIES__SOURCE": "pulsar-admin",
    }
    settings = load_settings(None, environment, {})
    monkeypatch.setattr("rgd.app.doctor.findings.CHECK_S", TIMEOUT_S)

    async def told(role: str) -> list[str]:
        rewrite(token_file, secured.token(role))
        [*found] = await run_all({"admin API": admin}, settings, "none runs")
        return [one.text for one in found if one.state is State.FAULT]

    assert await told(ADMIN) == []
    [refused] = await told("followed-admin")
    assert "resourcegroups answered 40" in refused
    assert "exchange.admin_token_file is of a superuser" in refused
    here = SystemClock().unix_ms
    monkeypatch.setattr(SystemClock, "unix_ms", lambda _: here() + 3_600_000)
    [off] = await told(ADMIN)
    # Pulsar says its time in whole seconds, and a busy one some later.
    assert re.match(r"this machine's clock is \+36\d\d s from Pulsar's; set the clocks", off)


async def test_a_certificate_that_nobody_vouches_for_is_not_trusted(
    secured: SecuredPulsar, token_file: Path
) -> None:
    member = PulsarExchange(secured.tls_url, USAGE, settings=settings(token_file))
    with pytest.raises(ExchangeDown, match=r"exchange\.tls_ca"):
        await member.open()
    await member.close()


async def heard_with_a_token_for(
    seconds: int, secured: SecuredPulsar, token_file: Path
) -> PulsarExchange:
    """A member that hears itself with a token for so long, or for longer if that ran out before it did."""
    rewrite(token_file, secured.token("rgd", seconds=seconds))
    impatient = settings(token_file, open_timeout_s=2, send_timeout_ms=1000)
    member = PulsarExchange(secured.pulsar.service_url, USAGE, settings=impatient)
    try:
        async with asyncio.timeout(seconds):
            await member.open()
            await hears_itself(member)
    except (TimeoutError, ExchangeDown):
        await member.close()
        return await heard_with_a_token_for(4 * seconds, secured, token_file)
    return member


async def test_a_rotated_token_works_when_the_old_one_runs_out(
    secured: SecuredPulsar, token_file: Path
) -> None:
    member = await heard_with_a_token_for(3, secured, token_file)
    # A refused token and a broker that is away look the same from here; by now it is the token.
    async with asyncio.timeout(TIMEOUT_S):
        while member.trouble is None or "token" not in member.trouble:
            with contextlib.suppress(ExchangeDown):
                await member.publish(b"unheard")
            await asyncio.sleep(0.05)
    rewrite(token_file, secured.token("rgd"))
    await hears_itself(member)
    await member.close()


async def test_a_token_that_is_rotated_in_time_costs_no_message_and_no_policy(
    secured: SecuredPulsar, token_file: Path
) -> None:
    url, access = secured.pulsar.service_url, settings(token_file)
    member = PulsarExchange(url, USAGE, settings=access)
    table = PulsarPolicyStore(url, POLICIES, settings=access)
    await member.open()
    await hears_itself(member)
    await table.open()
    first = member._session
    heard: set[bytes] = set()
    numbers = itertools.count()

    async def speak_until(condition: Callable[[], bool]) -> None:
        while not condition():
            await member.publish(b"%d" % next(numbers))  # it raises where one is lost
            heard.update(await member.receive())

    async with asyncio.timeout(TIMEOUT_S):
        # A token that is refused changes nothing: the old sessions go on.
        rewrite(token_file, secured.token("somebody-else"))
        await speak_until(lambda: member.attempts >= 1)
        assert member._session is first
        rewrite(token_file, secured.token("rgd"))
        await speak_until(lambda: member._session is not first)
        # What it hears may be behind what it says, by the greetings of before.
        spoken = next(numbers)
        while not heard >= {b"%d" % number for number in range(spoken)}:
            heard.update(await member.receive())
        await hears_itself(member)
        await lost(table, match="changed")
        await table.open()
        await table.put("group:rotated", b"1")
    assert member.trouble is None
    assert spoken > 0
    await member.close()
    await table.close()


@contextlib.asynccontextmanager
async def running(
    secured: SecuredPulsar, folder: Path, **options: object
) -> AsyncIterator[RgdDaemon]:
    """A whole daemon."""
    overrides = {
        "broker.name": "broker-1",
        "exchange.url": secured.pulsar.service_url,
        "log.dir": str(folder / "log"),
    } | {f"exchange.{name}": value for name, value in options.items()}
    daemon, _ = build(load_settings(None, {}, overrides), secured.pulsar.service_url)
    until = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(daemon.run(until, on_up=lambda: None))
        yield daemon
        until.set()
    await daemon.close()


async def test_a_daemon_joins_with_its_token_and_says_what_is_missing_without(
    secured: SecuredPulsar, token_file: Path, tmp_path: Path
) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        async with running(secured, tmp_path / "with", token_file=str(token_file)) as daemon:
            # (Other tests of this Pulsar leave a record in the table that is none of rgd's.)
            while not daemon.health().ready or "exchange" in str(daemon.health().degraded):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        async with running(secured, tmp_path / "without") as daemon:
            while "exchange.token_file" not in str(daemon.health().degraded):  # noqa: ASYNC110
                await asyncio.sleep(0.05)


def admin_client(secured: SecuredPulsar, token_file: Path) -> StockClient:
    access = ExchangeSettings(admin_url=secured.pulsar.admin_url, admin_token_file=token_file)
    return StockClient(access)


async def test_polling_backlogs_needs_the_grants_that_the_docs_say(
    secured: SecuredPulsar, token_file: Path
) -> None:
    topic = f"persistent://{NAMESPACE}/backlog"
    path = topic.replace("://", "/")
    secured.admin("PUT", path)
    secured.admin("PUT", f"{path}/subscription/all")
    client = admin_client(secured, token_file)
    precise = BacklogSettings(preciseTimeBasedBacklogQuotaCheck=True)
    reader = StockBacklogReader(client, precise, lambda: 0, cluster=CLUSTER, broker="b")
    try:
        # What the broker owns is told to a superuser only.
        with pytest.raises(StockRefused, match="401"):
            await reader.owned()
        rewrite(token_file, secured.token(ADMIN))
        assert topic in await reader.owned()
        # To read the topics, `consume` on their namespace is enough.
        rewrite(token_file, secured.token("rgd"))
        await client.prepare()
        found: list[TopicBacklog] = []
        reading = await reader.read([topic], found.append, TIMEOUT_S)
        assert (reading.gone, dict(reading.faults)) == ((), {})
        assert [one.topic for one in found] == [topic]
        rewrite(token_file, secured.token("nobody"))
        await client.prepare()
        reading = await reader.read([topic], found.append, TIMEOUT_S)
        assert list(reading.faults) == [f"topics/{topic}"]
        assert len(found) == 1
    finally:
        await reader.close()


async def test_stock_brokers_as_neighbours_need_the_grants_that_the_docs_say(
    secured: SecuredPulsar, token_file: Path, tmp_path: Path
) -> None:
    secured.admin("POST", f"namespaces/{SYSTEM_NAMESPACE}/permissions/rgd", ["produce", "consume"])
    member = PulsarExchange(secured.pulsar.service_url, STOCK_TOPIC, settings=settings(token_file))
    try:
        await member.open()
        await hears_itself(member)
    finally:
        await member.close()
    admin_file = tmp_path / "admin-token"
    admin_file.touch(0o600)
    admin_file.write_text(secured.token(ADMIN))

    async def listed(token: Path) -> list[str]:
        brokers = StockBrokerList(admin_client(secured, token), CLUSTER, 60)
        try:
            return [broker.service_url or "" for broker in await brokers.listed()]
        finally:
            await brokers.close()

    assert await listed(admin_file) == [secured.pulsar.service_url]
    with pytest.raises(StockRefused, match="401"):
        await listed(token_file)
