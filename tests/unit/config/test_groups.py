"""The groups file as a policy book: what each line of design 11's shape becomes, and the book's hash.

Mistakes are in test_bad_config; how a book decides requests is the core's tests' business.
"""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from rgd.config.groups import book_hash, load_groups
from rgd.core.policies.book import EMPTY_BOOK, PolicyBook
from rgd.core.policies.model import (
    Attachments,
    Group,
    Limit,
    Limits,
    Rates,
    SharePolicyName,
)
from rgd.core.units import QUOTA_MAX

TOPIC = "persistent://acme/orders/eu"

EVERYTHING = """
groups:
  gold:    {publish: {messages: 1000, bytes: 5e6}, dispatch: {messages: 2000}, policy: max-min, shadow: false}
  trial:   {publish: {messages: 50}, blocked: false}
  frozen:  {blocked: true, shadow: true, policy: steal}
attach:
  tenants:    {acme: gold}
  namespaces: {acme/orders: trial}
  topics:     {"persistent://acme/orders/eu": gold}
limits:
  broker:     {dispatch: {bytes: 1e8}}
  topics:     {"persistent://acme/orders/eu": {publish: {messages: 20}}}
  subscriptions:
    "persistent://acme/orders/eu": {audit: {dispatch: {messages: 0.5}}}
"""

BOOK = PolicyBook(
    groups={
        "gold": Group(
            "gold",
            Limit(Rates(1_000_000, 5_000_000_000), Rates(2_000_000, None)),
            policy=SharePolicyName.MAX_MIN,
        ),
        "trial": Group("trial", Limit(Rates(50_000, None))),
        "frozen": Group("frozen", blocked=True, shadow=True, policy=SharePolicyName.STEAL),
    },
    attach=Attachments({"acme": "gold"}, {"acme/orders": "trial"}, {TOPIC: "gold"}),
    limits=Limits(
        broker=Limit(dispatch=Rates(None, 100_000_000_000)),
        topics={TOPIC: Limit(Rates(20_000, None))},
        subscriptions={(TOPIC, "audit"): Limit(dispatch=Rates(500, None))},
    ),
)


def load(tmp_path: Path, text: str) -> PolicyBook:
    path = tmp_path / "groups.yaml"
    path.write_text(text)
    return load_groups(path)


def test_the_whole_shape_becomes_a_book(tmp_path: Path) -> None:
    assert load(tmp_path, EVERYTHING) == BOOK


@pytest.mark.parametrize("rate", ["0", "-1", "-5.5", "1e16", str(QUOTA_MAX + 1), "1" + "0" * 90])
def test_zero_less_and_beyond_the_largest_quota_are_unlimited(tmp_path: Path, rate: str) -> None:
    book = load(tmp_path, f"groups: {{gold: {{publish: {{messages: {rate}}}}}}}")
    assert book.groups["gold"].quota == Limit()


def test_the_smallest_rate_is_not_unlimited(tmp_path: Path) -> None:
    book = load(tmp_path, "groups: {gold: {publish: {messages: 0.0000001}}}")
    assert book.groups["gold"].quota.publish.messages == 1


@pytest.mark.parametrize(
    "text",
    ["{}", "groups:\nattach:\nlimits:\n", "groups: {}\nattach: {tenants: }\nlimits: {topics: }"],
)
def test_sections_may_be_left_empty(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text) == EMPTY_BOOK


def test_a_group_without_limits_is_unlimited(tmp_path: Path) -> None:
    book = load(tmp_path, "groups: {gold: {}, silver: {publish: {}}}")
    assert book.groups == {"gold": Group("gold"), "silver": Group("silver")}


def test_names_that_yaml_would_read_as_something_else_stay_names(tmp_path: Path) -> None:
    book = load(
        tmp_path, "groups: {no: {}, 2026: {}}\nattach: {tenants: {true: 'no', 007: '2026'}}"
    )
    assert book.attach.tenants == {"true": "no", "007": "2026"}


def test_aliases_spare_repeating_limits(tmp_path: Path) -> None:
    book = load(tmp_path, "groups: {gold: &g {publish: {messages: 5}}, silver: *g}")
    assert book.groups["silver"] == Group("silver", Limit(Rates(5_000, None)))


def test_a_hundred_thousand_namespaces_load_in_seconds(tmp_path: Path) -> None:
    groups = "".join(f"  g{number}: {{publish: {{messages: 10}}}}\n" for number in range(1000))
    namespaces = "".join(
        f"    t{number % 997}/n{number}: g{number % 1000}\n" for number in range(100_000)
    )
    started = time.perf_counter()
    book = load(tmp_path, f"groups:\n{groups}attach:\n  namespaces:\n{namespaces}")
    took_s = time.perf_counter() - started
    assert len(book.attach.namespaces) == 100_000
    # 0.8 s on two cores; the room is for a busy machine.
    assert took_s < 10


def test_wrong_groups_by_the_thousand_are_told_in_seconds(tmp_path: Path) -> None:
    groups = "".join(f"  group-{number}: {{}}\n" for number in range(900))
    wrong = "".join(f"    tenant-{number}: grop-{number}x\n" for number in range(5000))
    path = tmp_path / "groups.yaml"
    path.write_text(f"groups:\n{groups}attach:\n  tenants:\n{wrong}")
    started = time.perf_counter()
    with pytest.raises(Exception, match="and 4000 more faults"):
        load_groups(path)
    assert time.perf_counter() - started < 60


class TestHash:
    def test_it_is_the_same_whatever_the_order(self, tmp_path: Path) -> None:
        one = load(
            tmp_path,
            "groups: {a: {}, b: {blocked: true}}\nattach: {tenants: {x: a, y: b}}",
        )
        other = load(
            tmp_path,
            "attach: {tenants: {y: b, x: a}}\ngroups: {b: {blocked: true}, a: {}}",
        )
        assert book_hash(one) == book_hash(other)

    def test_it_is_the_same_in_another_process(self, tmp_path: Path) -> None:
        path = tmp_path / "groups.yaml"
        path.write_text(EVERYTHING)
        script = (
            "import sys, pathlib; from rgd.config.groups import book_hash, load_groups;"
            "print(book_hash(load_groups(pathlib.Path(sys.argv[1]))))"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
        )
        assert int(done.stdout) == book_hash(BOOK)

    def test_it_is_pinned_so_that_versions_agree(self) -> None:
        assert (book_hash(EMPTY_BOOK), book_hash(BOOK)) == (
            68639833004390057,
            4353072915680061083,
        )

    def test_it_is_never_zero_and_fits_a_signed_64_bit_number(self) -> None:
        assert 0 < book_hash(EMPTY_BOOK) < 1 << 63

    @pytest.mark.parametrize(
        "changed",
        [
            EVERYTHING.replace("messages: 1000", "messages: 1001"),
            EVERYTHING.replace("dispatch: {messages: 2000}", "dispatch: {bytes: 2000}"),
            EVERYTHING.replace("policy: max-min", "policy: residual"),
            EVERYTHING.replace("policy: max-min", "policy: max-min, topic_split: even"),
            EVERYTHING.replace("policy: max-min", "policy: max-min, topic_split: shared"),
            EVERYTHING.replace("blocked: false", "blocked: true"),
            EVERYTHING.replace("shadow: true", "shadow: false"),
            EVERYTHING.replace("acme: gold", "acme: trial"),
            EVERYTHING.replace("acme/orders: trial", "acme/other: trial"),
            EVERYTHING.replace('eu": gold', 'us": gold'),
            EVERYTHING.replace("bytes: 1e8", "bytes: 1e9"),
            EVERYTHING.replace("messages: 20}", "messages: 21}"),
            EVERYTHING.replace("audit", "audit2"),
            EVERYTHING.replace("messages: 0.5", "messages: 0.6"),
        ],
    )
    def test_every_change_is_seen(self, tmp_path: Path, changed: str) -> None:
        assert changed != EVERYTHING
        assert book_hash(load(tmp_path, changed)) != book_hash(BOOK)
