"""Process settings: one frozen model for each concern, all of them in `Settings`.

Law: a setting exists only if it has an effect. Each has its default, bounds, unit and what it does (the text below it) here and
nowhere else; docs/configuration.md is generated from these models, and a fault quotes them.

`load` has the sources of values and their order. `relations` has the relations between two
settings. An adapter takes the section by which it is configured, or `rgd.app` fills a dataclass of its own from it.
"""

import socket
from enum import StrEnum
from pathlib import Path

from pydantic import Field

from rgd.config.backlog_settings import BacklogSettings
from rgd.config.log_settings import LogSettings
from rgd.config.values import (
    EMBEDDED,
    Address,
    Count,
    DialectNames,
    ExchangeUrl,
    Flag,
    HttpUrls,
    Millis,
    Name,
    Number,
    Rounds,
    Seconds,
    Section,
    Size,
    TableTopic,
    UsageTopic,
    WholeSeconds,
    parse_dialects,
    split_address,
)
from rgd.core.exchange.dialects import DialectName
from rgd.core.exchange.limits import PEERS_MAX, SHARDS_MAX
from rgd.core.policies.model import OnIsolation, OnUnknown, SharePolicyName, TopicSplit
from rgd.core.shares.model import WEIGHT_MAX, WEIGHT_MIN, WEIGHT_ONE
from rgd.ports.door import Ungoverned


class PoliciesSource(StrEnum):
    """The owner of the policies (docs/policies.md)."""

    #: A compacted topic, which a groups file seeds and the admin API changes.
    TABLE = "table"
    #: The groups file; admin writes are refused.
    FILE = "file"
    #: A stock Pulsar, read through its admin API; admin writes are refused.
    PULSAR_ADMIN = "pulsar-admin"


class BrokerSettings(Section):
    """The broker that this daemon represents."""

    name: Name = Field(default_factory=socket.gethostname)
    """The broker's name in the exchange. It must be stable: never a random pod's name."""
    weight: Number = Field(default=1, ge=WEIGHT_MIN / WEIGHT_ONE, le=WEIGHT_MAX // WEIGHT_ONE)
    """This broker's weight in `max-min`."""


class ExchangeSettings(Section):
    """How daemons exchange their usage."""

    url: ExchangeUrl = EMBEDDED
    """The URL of the exchange; `embedded` runs one on this machine. Of several brokers any that answers is used."""
    listener_name: Name | None = None
    """The name of the advertised listener by which this daemon reaches Pulsar's brokers (Pulsar's
    `advertisedListeners`); without it their usual addresses."""
    open_timeout_s: Count = Field(default=5, ge=1, le=60)
    """Longest time of each step of connecting to Pulsar, in whole seconds."""
    send_timeout_ms: Millis = Field(default=2000, ge=100, le=60_000)
    """Longest time until Pulsar has accepted a message; also how long a daemon waits for its own messages to
    come back before it opens another session."""
    embedded_dir: Path = Path("rgd-exchange")
    """Folder of the embedded exchange. All daemons that share it use the same folder, on a local file system, as
    one user."""
    token_file: Path | None = None
    """A file with the token for Pulsar, not readable by others. When it changes, the daemon connects with the
    new one, and leaves the old connection once the new one works; the policies table is opened with the new one at once."""
    tls_ca: Path | None = None
    """Trusted certificates for `pulsar+ssl://`, PEM; without it those of Python's certifi. It and the next two
    are read again when they change, as the token."""
    tls_cert: Path | None = None
    """The daemon's certificate for Pulsar, PEM, where Pulsar requires one."""
    tls_key: Path | None = None
    """The key of `exchange.tls_cert`, PEM, not readable by others."""
    admin_url: HttpUrls | None = None
    """Pulsar's admin API, to create namespaces (with retention -1/-1 that of `policies.topic`), and for `policies.source: pulsar-admin`,
    `backlog.poll` and the dialect `pulsar`. Of several the next one is asked when one is unreachable. One with a password is refused."""
    admin_token_file: Path | None = None
    """A file with a bearer token for the admin API; read again for every poll. Without it `exchange.token_file`."""
    admin_ca_file: Path | None = None
    """Trusted certificates for the admin API, PEM; without it `exchange.tls_ca`."""
    topic: UsageTopic = "non-persistent://public/rgd/usage"
    """The topic for usage reports."""
    dialects: DialectNames = "compact"
    """`compact` among rgd daemons, on `exchange.topic`; also `pulsar`: the daemons share quotas with the stock
    brokers of the Pulsar at `exchange.url`, and advertise to them what was admitted here."""
    pulsar_period_s: WholeSeconds = Field(default=60, ge=1, le=3600)
    """The stock brokers' `resourceUsageTransportPublishIntervalInSecs`: their reports count what passed in this
    time."""
    shards: Count = Field(default=1, ge=1, le=SHARDS_MAX)
    """The number of topics over which reports are spread by group. With more than one a daemon reads only those
    of its groups. It is changed by a rolling restart."""
    round_ms: Millis = Field(default=1000, ge=50, le=60_000)
    """Length of a round; usage is reported every round."""
    min_interval_ms: Millis = Field(default=100, ge=1, le=60_000)
    """Shortest time between two reports when demand jumps."""
    settle_max_ms: Millis = Field(default=100, ge=0, le=60_000)
    """Longest delay before an increased share is used."""
    tolerance: Number = Field(default=0.1, ge=0, le=1)
    """Relative change of a row that causes a report."""
    full_every_rounds: Rounds = Field(default=10, ge=1, le=1000)
    """Every row is sent once in this many rounds."""
    expiry_rounds: Rounds = Field(default=3, ge=1, le=1000)
    """A broker that is silent for this long is removed."""
    isolation_hold_rounds: Rounds = Field(default=2, ge=0, le=1000)
    """Shares are kept for this long once the exchange is unreachable."""
    on_isolation: OnIsolation = OnIsolation.EQUAL
    """The share after that: `equal` (quota / known brokers), `hold` (the last share; an equal part if it did not know
    its share yet) or `open` (unlimited)."""
    expected_brokers: Count = Field(default=1, ge=1, le=100_000)
    """Lower bound of the number of known brokers."""
    yield_rounds: Rounds = Field(default=10, ge=1, le=1000)
    """A daemon that returns and finds its name taken stays on its floor for this long, and then exits."""
    peers_max: Count = Field(default=PEERS_MAX, ge=1, le=100_000)
    """Most other brokers; a further one is ignored until another is removed."""

    @property
    def has_stock_brokers(self) -> bool:
        """Whether the daemon also speaks the stock brokers' dialect."""
        return DialectName.PULSAR in parse_dialects(self.dialects)


class SharesSettings(Section):
    """How quotas are divided and granted."""

    policy: SharePolicyName = SharePolicyName.MAX_MIN
    """The share policy of groups without their own."""
    floor_fraction: Number = Field(default=0.01, ge=0, le=1)
    """Fraction of a quota that is split evenly, so that idle brokers can start."""
    burst_ms: Millis = Field(default=250, ge=1, le=60_000)
    """Depth of every bucket, in time at its current rate."""
    topic_split: TopicSplit = TopicSplit.SHARED
    """How a broker divides its share of a group over its topics, for groups without their own setting: `shared`
    (one bucket), `even`, or `proportional` to each topic's granted and refused work."""
    request_max_s: Seconds = Field(default=10, ge=0.001, le=86_400)
    """A request for more than the whole quota of this time is refused as too large."""


class PoliciesSettings(Section):
    """The source of groups, attachments and limits."""

    source: PoliciesSource = PoliciesSource.TABLE
    """`table`: a compacted topic; the groups file adds policies that it lacks. `file`: the groups file, and
    admin writes are refused. `pulsar-admin`: a stock Pulsar at `exchange.admin_url`; the groups file is used
    until Pulsar was read."""
    topic: TableTopic = "persistent://public/rgd/policies"
    """The topic of the policies table."""
    file: Path | None = None
    """The groups file."""
    unknown: OnUnknown = OnUnknown.DENY
    """The answer while no policies are known: neither this run nor an earlier one has read any, and there is no
    groups file. `deny`: the daemon is not ready, and refuses with 503 and a time to retry; `allow`: requests
    are granted, ungoverned and counted."""
    poll_ms: Millis = Field(default=10_000, ge=100, le=3_600_000)
    """Time from one poll of Pulsar's admin API to the next; a change is in force within two."""
    topic_calls_max: Count = Field(default=4000, ge=0, le=1_000_000)
    """Most calls of one poll for the policies of topics: four a topic, one for each of its subscriptions.
    Further topics take turns. 0: topics' policies are not read."""


class HttpSettings(Section):
    """The HTTP server for callers."""

    listen: Address = "127.0.0.1:7700"
    """Address to listen on; port 0 takes a free one. Beyond loopback, `http.tokens_file` is required, except
    with `rgd serve --insecure`."""
    probe_listen: Address | None = None
    """An additional address that answers `/healthz`, `/readyz` and `/metrics` alone and without TLS: for probes
    that have no certificate. Beyond loopback as `http.listen`."""
    unix_socket: Path | None = None
    """An additional unix socket to listen on."""
    batch_max: Count = Field(default=1000, ge=1, le=1000)
    """Most items in one array."""
    body_max_bytes: Size = Field(default=256 << 10, ge=1 << 10, le=1 << 20)
    """Largest body. No other caller is served while one is decoded, which may take 4 ms at 256 KiB."""
    connections_max: Count = Field(default=4096, ge=1, le=1_000_000)
    """Most connections at once; fewer where the process may open fewer files. A new one beyond that closes the
    longest idle one, or is answered for probes only."""
    connections_per_address_max: Count = Field(default=1024, ge=1, le=1_000_000)
    """Most connections of one address (IPv6: of one /64); 127.0.0.1, ::1 and the unix socket are bounded by
    `http.connections_max` alone. Raise it for a proxy."""
    idle_timeout_ms: Millis = Field(default=75_000, ge=100, le=3_600_000)
    """A connection without a request is closed after this time."""
    request_timeout_ms: Millis = Field(default=10_000, ge=100, le=600_000)
    """Longest time for a request head, for the body after it, and for a TLS handshake."""
    answer_timeout_ms: Millis = Field(default=30_000, ge=100, le=600_000)
    """A connection that has not read its answer after this time is closed."""
    unread_max_bytes: Size = Field(default=64 << 20, ge=64 << 10, le=1 << 40)
    """Most bytes of unread answers, of all connections together; beyond that the connection whose answer waits
    longest is closed. One answer may be larger by itself while no other waits."""
    bodies_max_bytes: Size = Field(default=64 << 20, ge=1 << 10, le=1 << 40)
    """Most bytes of request bodies, of all connections together, beyond the first 128 KiB of each; then 503."""
    ungoverned: Ungoverned = Ungoverned.ALLOW
    """The answer for names that are attached to no group."""
    shadow: Flag = False
    """Decide and count, and refuse nothing: every request is granted, and a header and a metric say what would
    have been."""
    tokens_file: Path | None = None
    """Bearer tokens: a YAML list of `{name, token or token_sha256, scopes}` with scopes among `query`, `read`,
    `admin`; not readable by others."""
    tls_cert: Path | None = None
    """TLS certificate chain, PEM."""
    tls_key: Path | None = None
    """The certificate's key, PEM."""
    tls_client_ca: Path | None = None
    """Certificates of the authorities, PEM, one of which must have signed a caller's certificate; probes, too,
    but those at `http.probe_listen` and callers of the unix socket."""

    @property
    def address(self) -> tuple[str, int]:
        """Host (IPv6 without brackets) and port to listen on."""
        return split_address(self.listen)


class Settings(Section):
    """All settings of a process. Only a restart changes them."""

    cluster: Name = "standalone"
    """The cluster's name: Pulsar's `cluster` label in metrics."""
    shutdown_timeout_ms: Millis = Field(default=10_000, ge=100, le=600_000)
    """Longest time from SIGTERM to the exit; requests in flight are cut off after 0.4 of it."""
    broker: BrokerSettings = Field(default_factory=BrokerSettings)
    exchange: ExchangeSettings = Field(default_factory=ExchangeSettings)
    shares: SharesSettings = Field(default_factory=SharesSettings)
    policies: PoliciesSettings = Field(default_factory=PoliciesSettings)
    http: HttpSettings = Field(default_factory=HttpSettings)
    backlog: BacklogSettings = Field(default_factory=BacklogSettings)
    log: LogSettings = Field(default_factory=LogSettings)
