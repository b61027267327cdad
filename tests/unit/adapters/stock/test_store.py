"""The file of what was read last: it comes back whole, or not at all.

Not covered: what a daemon does with it (tests/unit/app/test_policies_stock.py).
"""

from pathlib import Path

import pytest

from rgd.adapters.stock.store import FILE_BYTES_MAX, StockFile
from rgd.config.kept_file import KeptFile
from rgd.core.policies.model import (
    BacklogAction,
    BacklogQuota,
    BacklogQuotas,
    Group,
    Limit,
    LocalLimit,
    Rates,
)
from rgd.ports.stock import StockNamespace, StockPolicies, StockTopic

URL = "http://pulsar:8080"
EVERYTHING = StockPolicies(
    groups={"gold": Group("gold", Limit(Rates(1), Rates(None, 2)))},
    namespaces={
        "acme/orders": StockNamespace(
            "gold",
            LocalLimit(Rates(3), Rates(4), dispatch_period_s=5, dispatch_relative=True),
            LocalLimit(dispatch=Rates()),
            BacklogQuotas(BacklogQuota(6, 7, BacklogAction.EVICT), None),
        ),
        "acme/bare": StockNamespace(),
    },
    topics={
        "persistent://acme/orders/ä/|": StockTopic(
            by_subscription={"": LocalLimit(dispatch=Rates(8))},
            backlogs=BacklogQuotas(None, BacklogQuota(age_s=9)),
        )
    },
    broker=LocalLimit(dispatch=Rates(10, None)),
)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: data[: len(data) // 2], id="cut"),
        pytest.param(lambda _data: b"", id="empty"),
        pytest.param(lambda data: data.replace(b'"version":1', b'"version":2'), id="of later"),
        pytest.param(lambda data: data.replace(b"pulsar:", b"other:"), id="of another"),
        pytest.param(lambda data: data.replace(b'"gold"', b"7", 1), id="wrong type"),
        pytest.param(lambda _data: b"[" * 100_000, id="deep"),
    ],
)
def test_a_damaged_file_is_none(tmp_path: Path, damage: object) -> None:
    path = tmp_path / "policies.json"
    StockFile(path, URL).store(EVERYTHING)
    assert callable(damage)
    path.write_bytes(damage(path.read_bytes()))
    assert StockFile(path, URL).load() is None


def test_what_another_version_stored_is_none(tmp_path: Path) -> None:
    path = tmp_path / "policies.json"
    KeptFile(path, URL, FILE_BYTES_MAX).store(b'{"groups":{"gold":3}}')
    assert StockFile(path, URL).load() is None


def test_no_file_is_none(tmp_path: Path) -> None:
    assert StockFile(tmp_path / "policies.json", URL).load() is None
