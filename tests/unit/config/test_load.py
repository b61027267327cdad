"""Process settings from all their sources: who wins, and every fault with its own source.

Files with mistakes are in test_bad_config; what a setting does is tested where it is used.
"""

from pathlib import Path
from typing import Any

import pytest

from rgd.config.load import FIELDS, load_settings, variable_of
from rgd.config.settings import PoliciesSource, Settings
from rgd.config.values import expectation, parse_interceptors, parse_size
from rgd.core.policies.model import OnIsolation
from rgd.errors import ConfigError
from rgd.ports.usagelog import Fsync, Interceptor


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "rgd.yaml"
    path.write_text(text)
    return path


def faults_of(*args: Any) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        load_settings(*args)
    return [str(fault) for fault in raised.value.faults]


def test_without_any_source_there_are_the_defaults_of_the_design() -> None:
    settings = load_settings(None, {}, {})
    assert settings == Settings()
    assert settings.cluster == "standalone"
    assert settings.exchange.url == "embedded"
    assert settings.exchange.round_ms == 1000
    assert settings.exchange.on_isolation is OnIsolation.EQUAL
    assert settings.shares.floor_fraction == 0.01
    assert settings.broker.weight == 1
    assert settings.http.address == ("127.0.0.1", 7700)
    assert settings.http.body_max_bytes == 256 * 1024
    assert settings.log.segment_bytes == 64 * 1024 * 1024
    assert settings.policies.source is PoliciesSource.TABLE
    # PIP-82's example: a change of 10 % is reported, and everything once in N rounds.
    assert (settings.exchange.tolerance, settings.exchange.full_every_rounds) == (0.1, 10)


@pytest.mark.parametrize("key", FIELDS)
def test_every_default_obeys_its_own_bounds(key: str) -> None:
    section, _, name = key.rpartition(".")
    settings: Any = Settings()
    owner = getattr(settings, section) if section else settings
    value = getattr(owner, name)
    overrides = {key: value}
    if value is not None:
        assert load_settings(None, {}, overrides) == Settings()
    assert FIELDS[key].description
    assert expectation(FIELDS[key])


def test_options_beat_the_environment_which_beats_the_file_which_beats_the_defaults(
    tmp_path: Path,
) -> None:
    file = write(tmp_path, "exchange: {round_ms: 200, tolerance: 0.2, expiry_rounds: 20}")
    environ = {"RGD_EXCHANGE__ROUND_MS": "300", "RGD_EXCHANGE__TOLERANCE": "0.3"}
    exchange = load_settings(file, environ, {"exchange.round_ms": 400}).exchange
    assert (exchange.round_ms, exchange.tolerance) == (400, 0.3)
    assert (exchange.expiry_rounds, exchange.full_every_rounds) == (20, 10)


def test_the_environment_reaches_every_kind_of_value() -> None:
    environ = {
        "PATH": "/bin",
        "RGD_CLUSTER": "east",
        "RGD_BROKER__NAME": "007",
        "RGD_BROKER__WEIGHT": "2.5",
        "RGD_HTTP__BODY_MAX_BYTES": "1 MiB",
        "RGD_HTTP__LISTEN": "[::1]:0",
        "RGD_LOG__FSYNC": "never",
        "RGD_LOG__DIR": "logs",
        "RGD_EXCHANGE__URL": "pulsar+ssl://a.example:6651,b.example",
    }
    settings = load_settings(None, environ, {})
    assert settings.cluster == "east"
    assert (settings.broker.name, settings.broker.weight) == ("007", 2.5)
    assert settings.http.body_max_bytes == 1024 * 1024
    assert settings.http.address == ("::1", 0)
    assert settings.log.fsync is Fsync.NEVER
    assert settings.log.dir == Path("logs")


def test_a_relation_blames_the_source_that_spoke_last(tmp_path: Path) -> None:
    file = write(tmp_path, "exchange: {min_interval_ms: 500}")
    assert load_settings(file, {}, {}).exchange.min_interval_ms == 500
    [fault] = faults_of(file, {"RGD_EXCHANGE__ROUND_MS": "400"}, {})
    assert fault == (
        "environment: RGD_EXCHANGE__ROUND_MS: expected exchange.min_interval_ms of at most "
        "exchange.round_ms; got exchange.min_interval_ms 500, exchange.round_ms 400"
    )


def test_probes_have_an_address_of_their_own() -> None:
    both = {"http.listen": "127.0.0.1:7701", "http.probe_listen": "127.0.0.1:7701"}
    [fault] = faults_of(None, {}, both)
    assert "expected another address as http.probe_listen than as http.listen" in fault
    load_settings(None, {}, dict.fromkeys(both, "127.0.0.1:0"))


@pytest.mark.parametrize("listen", ["0.0.0.0:7700", "[::]:7700", "10.1.2.3:1", "gateway:7700"])
def test_it_needs_tokens_or_the_option_insecure(listen: str) -> None:
    overrides = {"http.listen": listen}
    for key in ("http.listen", "http.probe_listen"):
        [fault] = faults_of(None, {}, {key: listen})
        assert fault.startswith(f"command line: {key}: expected loopback addresses")
        assert "set it, or start with --insecure" in fault
    assert load_settings(None, {}, overrides, insecure=True).http.listen == listen
    with_tokens = {"RGD_HTTP__TOKENS_FILE": "tokens.yaml"}
    assert load_settings(None, with_tokens, overrides).http.listen == listen


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "127.8.8.8:1", "[::1]:7700", "localhost:80"])
def test_loopback_needs_no_tokens(listen: str) -> None:
    assert load_settings(None, {}, {"http.listen": listen}).http.listen == listen


@pytest.mark.parametrize(
    "address",
    ["", ":7700", "host:", "host:65536", "host:٣", "::1:7700", "[::1]", "[x]:1", "http://a:1"],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    [fault] = faults_of(None, {}, {"http.listen": address})
    assert "command line: http.listen: expected HOST:PORT" in fault


@pytest.mark.parametrize(
    "url",
    [
        "embedded",
        "pulsar://h:6650",
        "pulsar://h",
        "pulsar://a:1,b:2",
        "pulsar://[::1]:6650",
        "pulsar+ssl://h:1/",
    ],
)
def test_what_pulsar_connects_to_is_an_exchange_url(url: str) -> None:
    assert load_settings(None, {}, {"exchange.url": url}).exchange.url == url


@pytest.mark.parametrize(
    "url", ["", "http://h:80", "pulsar://", "pulsar://a:1,", "pulsar://h:x", "pulsar://h/x"]
)
def test_anything_else_is_no_exchange_url(url: str) -> None:
    [fault] = faults_of(None, {}, {"exchange.url": url})
    assert "command line: exchange.url: expected `embedded`, pulsar://" in fault


@pytest.mark.parametrize(
    ("text", "size"), [("1024", 1024), ("1.5KiB", 1536), ("5 MB", 5_000_000), (" 2 kB ", 2000)]
)
def test_a_size_is_bytes_with_or_without_a_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "MiB", "-1", "1 mib", "1 Mb", "1e3", "0.1", "1.0001 KiB", "1 MiB 2"]
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_size(text)


def test_every_setting_has_a_variable_of_its_own() -> None:
    assert len({variable_of(key) for key in FIELDS}) == len(FIELDS)
    assert variable_of("exchange.round_ms") == "RGD_EXCHANGE__ROUND_MS"


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("", set()),
        ("AppendIndexMetadataInterceptor", {Interceptor.INDEX}),
        (
            "org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor, "
            "AppendBrokerTimestampMetadataInterceptor",
            set(Interceptor),
        ),
    ],
)
def test_interceptors_have_pulsars_names_bare_or_in_full(text: str, added: set[str]) -> None:
    Settings.model_validate({"log": {"brokerEntryMetadataInterceptors": text}})
    assert set(parse_interceptors(text)) == added


@pytest.mark.parametrize(
    "url", ["http://a:8080,", "http://a:8080/x,b:8080", "http://a,ftp://b", "a:8080"]
)
def test_a_list_of_admin_addresses_that_is_none_is_a_fault(url: str) -> None:
    (fault,) = faults_of(None, {}, {"exchange.admin_url": url})
    assert "several as HOST:PORT,HOST:PORT" in fault


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("RGD_BROKER__NAMES", "RGD_BROKER__NAME"),
        ("RGD_BROKR__NAME", "RGD_BROKER__NAME"),
        ("RGD_CLUSTR", "RGD_CLUSTER"),
        # What all variables of a section have in common makes none of them a neighbour.
        ("RGD_BROKER__PROCESSES", None),
    ],
)
def test_an_unknown_variable_is_told_its_neighbour(variable: str, meant: str | None) -> None:
    hint = f"; did you mean '{meant}'?" if meant else ""
    assert faults_of(None, {variable: "1"}, {}) == [
        f"environment: {variable}: unknown setting{hint}"
    ]
