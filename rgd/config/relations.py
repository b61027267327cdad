"""Constraints between settings; `settings` has the constraints of one.

Law: a relation is data (its settings, the test of their values, the text), so that `load` can skip relations
whose settings are already faulty, and name the source that set one of them last.
"""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from rgd.config.settings import PoliciesSource, Settings
from rgd.config.values import EMBEDDED, parse_dialects, show_size, split_address
from rgd.core.exchange.dialects import DialectName
from rgd.ports.door import is_loopback
from rgd.storage.objects import OBJECT_BYTES_MAX, folder_of


@dataclass(frozen=True, slots=True)
class Relation:
    """One condition over several settings."""

    #: Dotted keys; a fault names the first of those that the last source set.
    keys: tuple[str, ...]
    #: Whether it holds for their values, in the order of the keys.
    test: Callable[..., bool]
    #: The expectation, and what to do.
    expected: str

    def values(self, settings: Settings) -> tuple[Any, ...]:
        """The values of its settings."""
        return tuple(attrgetter(key)(settings) for key in self.keys)


def _is_same_folder(place: str | None, folder: Path) -> bool:
    found = None if place is None else folder_of(place)
    return found is not None and found.resolve() == folder.resolve()


def _is_loopback(address: str) -> bool:
    return is_loopback(split_address(address)[0])


def _has_stock_brokers(dialects: str) -> bool:
    return DialectName.PULSAR in parse_dialects(dialects)


#: Waived by `rgd serve --insecure`.
GUARDED: Final = Relation(
    ("http.listen", "http.probe_listen", "http.tokens_file"),
    lambda listen, probes, tokens: (
        tokens is not None or all(map(_is_loopback, (listen, probes or listen)))
    ),
    "expected loopback addresses (127.0.0.1) as http.listen and http.probe_listen as long as "
    "http.tokens_file is not set; set it, or start with --insecure",
)

RELATIONS: Final = (
    Relation(
        ("http.listen", "http.probe_listen"),
        lambda listen, probes: listen != probes or split_address(listen)[1] == 0,
        "expected another address as http.probe_listen than as http.listen",
    ),
    Relation(
        ("exchange.min_interval_ms", "exchange.round_ms"),
        lambda interval_ms, round_ms: interval_ms <= round_ms,
        "expected exchange.min_interval_ms of at most exchange.round_ms",
    ),
    Relation(
        ("exchange.settle_max_ms", "exchange.round_ms"),
        lambda settle_ms, round_ms: settle_ms <= round_ms,
        "expected exchange.settle_max_ms of at most exchange.round_ms",
    ),
    Relation(
        ("exchange.peers_max", "exchange.expected_brokers"),
        lambda peers, brokers: brokers <= peers + 1,
        "expected exchange.peers_max of at least exchange.expected_brokers - 1, because further brokers "
        "are ignored",
    ),
    Relation(
        ("exchange.isolation_hold_rounds", "exchange.expiry_rounds"),
        lambda hold_rounds, expiry_rounds: hold_rounds <= expiry_rounds,
        "expected exchange.isolation_hold_rounds of at most exchange.expiry_rounds, because peers remove a "
        "silent broker then and divide its share",
    ),
    Relation(
        ("exchange.tls_cert", "exchange.tls_key"),
        lambda cert, key: (cert is None) == (key is None),
        "expected exchange.tls_cert and exchange.tls_key together, or neither",
    ),
    Relation(
        ("exchange.url", "exchange.tls_ca", "exchange.tls_cert"),
        lambda url, ca, cert: url.startswith("pulsar+ssl://") or (ca is None and cert is None),
        "expected exchange.url to be pulsar+ssl://... where exchange.tls_ca or exchange.tls_cert is set "
        "(for the admin API alone: exchange.admin_ca_file)",
    ),
    Relation(
        ("exchange.url", "exchange.listener_name"),
        lambda url, listener: url != EMBEDDED or listener is None,
        "expected exchange.url to name a Pulsar where exchange.listener_name is set: the embedded broker "
        "has no listeners",
    ),
    Relation(
        ("exchange.url", "exchange.token_file"),
        lambda url, token: url != EMBEDDED or token is None,
        "expected exchange.url to name a Pulsar where exchange.token_file is set: the embedded broker "
        "takes no tokens (for the admin API alone: exchange.admin_token_file)",
    ),
    Relation(
        ("exchange.dialects", "exchange.url", "exchange.admin_url"),
        lambda dialects, url, admin: (
            not _has_stock_brokers(dialects) or (url != EMBEDDED and admin is not None)
        ),
        "expected exchange.url and exchange.admin_url to name a Pulsar where exchange.dialects has `pulsar`: "
        "its brokers are the neighbours, and its admin API lists which of them live",
    ),
    Relation(
        ("exchange.pulsar_period_s", "exchange.round_ms", "exchange.dialects"),
        lambda period_s, round_ms, dialects: (
            not _has_stock_brokers(dialects) or period_s * 1000 >= round_ms
        ),
        "expected exchange.round_ms of at most exchange.pulsar_period_s where exchange.dialects has `pulsar`",
    ),
    Relation(
        ("log.local_bytes", "log.segment_bytes"),
        lambda local, segment: local >= 2 * segment,
        "expected log.local_bytes of at least two times log.segment_bytes: one segment is written, "
        "and only closed ones are deleted",
    ),
    Relation(
        ("log.segment_bytes", "log.tier_url"),
        lambda segment, tier: tier is None or segment <= OBJECT_BYTES_MAX,
        f"expected log.segment_bytes of at most {show_size(OBJECT_BYTES_MAX)} where log.tier_url is set: a "
        "segment is uploaded in one piece, so that nothing is ever overwritten",
    ),
    Relation(
        ("log.tier_url", "log.dir"),
        lambda tier, folder: not _is_same_folder(tier, folder),
        "expected log.tier_url to be another folder than log.dir: `rgd log` takes a folder for a log or for a tier",
    ),
    Relation(
        ("policies.source", "policies.file"),
        lambda source, file: source is not PoliciesSource.FILE or file is not None,
        "expected policies.file (or --groups) to name the groups file where policies.source is `file`",
    ),
    Relation(
        ("policies.source", "exchange.admin_url"),
        lambda source, admin: source is not PoliciesSource.PULSAR_ADMIN or admin is not None,
        "expected exchange.admin_url to name Pulsar's admin API where policies.source is `pulsar-admin`",
    ),
    Relation(
        ("backlog.poll", "exchange.admin_url"),
        lambda is_polled, admin: not is_polled or admin is not None,
        "expected exchange.admin_url to name Pulsar's admin API where backlog.poll is true",
    ),
    Relation(
        ("backlog.poll_ms", "backlog.stale_after_s", "backlog.poll"),
        lambda poll_ms, stale_s, is_polled: not is_polled or poll_ms <= stale_s * 500,
        "expected backlog.stale_after_s of at least two times backlog.poll_ms: otherwise polled topics are "
        "forgotten before the next poll",
    ),
    Relation(
        ("backlog.enforce", "backlog.poll"),
        lambda is_enforced, is_polled: is_polled or not is_enforced,
        "expected backlog.poll: true where backlog.enforce is true: only polled topics are evicted by this "
        "daemon",
    ),
    Relation(
        ("http.bodies_max_bytes", "http.body_max_bytes"),
        lambda bodies, body: bodies >= body,
        "expected http.bodies_max_bytes of at least http.body_max_bytes",
    ),
    Relation(
        ("http.tls_cert", "http.tls_key"),
        lambda cert, key: (cert is None) == (key is None),
        "expected http.tls_cert and http.tls_key together, or neither",
    ),
    Relation(
        ("http.tls_client_ca", "http.tls_cert"),
        lambda ca, cert: ca is None or cert is not None,
        "expected http.tls_cert and http.tls_key beside http.tls_client_ca",
    ),
)
