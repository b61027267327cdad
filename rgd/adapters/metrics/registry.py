"""Every metric that rgd shows, declared once: name, help, labels.

Law: a name is shown exactly as it is declared here, and nothing else is shown under `rgd_`. Base
units, `_total` on counters and on nothing else. docs/metrics.md is generated from this table.
Names under `pulsar_` are Pulsar's own, to the letter, so that its dashboards and alerts work.

Every metric says how its series are bounded (`Bound`), and what becomes of those beyond (`Fold`).
Process and interpreter metrics are prometheus_client's own and are added in `exposition`.
"""

from typing import Final

from rgd.adapters.metrics.backlog_metrics import BACKLOG_METRICS, BACKLOG_POLL_METRICS
from rgd.adapters.metrics.metric import Bound, Fold, Metric
from rgd.adapters.metrics.stock_metrics import STOCK_METRICS

_GROUP: Final = ("group", "kind", "dimension")

#: As Pulsar writes them: `namespace` is `tenant/namespace`, `topic` the full name.
_SUBSCRIPTION: Final = ("cluster", "tenant", "namespace", "topic", "subscription")

#: `log.name` and the broker, in Kafka's words.
_LOG: Final = ("topic", "partition")

ROUND_SECONDS: Final = Metric(
    "rgd_round_seconds",
    "Processing time of one round: closing windows, reporting, computing shares.",
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0),
)
HTTP_REQUEST_SECONDS: Final = Metric(
    "rgd_http_request_seconds",
    "Time from a request's head to the end of its answer, by the call's path and the answer's status (`2xx`).",
    ("route", "status"),
    # Routes are those of the server, and `other`.
    bound=Bound.SOURCE,
    buckets=(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0),
)

METRICS: Final = (
    # What groups get.
    Metric("rgd_quota", "Cluster-wide quota per second; no series where it is unlimited.", _GROUP),
    Metric(
        "rgd_share",
        "This broker's share of the quota per second; no series where it is unlimited.",
        _GROUP,
    ),
    Metric("rgd_admitted_total", "Messages or bytes granted.", _GROUP),
    Metric(
        "rgd_returned_total",
        "Messages or bytes of those granted that were given back (`POST /v1/settle`, released leases); no series before the first.",
        _GROUP,
    ),
    Metric(
        "rgd_refused_total",
        "Messages or bytes refused, by the level that refused the request.",
        (*_GROUP, "limited_by"),
    ),
    Metric("rgd_wanted", "Demand here per second, as this broker reports it.", _GROUP),
    Metric(
        "rgd_shadow_refused_total",
        "Messages or bytes granted that a shadow group would have refused.",
        _GROUP,
    ),
    Metric(
        "rgd_http_shadow_total",
        "Requests granted whole because the daemon is a shadow (`http.shadow`), by what they would have been: `refused`, "
        "`partial`, `too_large`, `backlog`, `ungoverned`, `unknown`.",
        ("outcome",),
    ),
    Metric("rgd_leases", "Leases that live."),
    Metric(
        "rgd_lease_events_total",
        "What happened to leases: `granted`, `renewed`, `refused` (not made), `released`, `expired`.",
        ("event",),
    ),
    Metric(
        "rgd_leased",
        "Messages or bytes that leases have taken and may not have spent, at most; no series without leases.",
        _GROUP,
    ),
    Metric(
        "rgd_over_total",
        "Messages or bytes granted beyond the soft limit of a group; no series without one. A changed soft limit starts at 0.",
        _GROUP,
    ),
    # What throttles the dispatch of subscriptions.
    *(
        Metric(
            f"pulsar_subscription_dispatch_throttled_{unit}_events",
            f"How often a limit lowered the {what} that a subscription's dispatcher may read "
            "(PIP-406); `reason` is the limit: `broker`, `resource_group`, `topic`, `subscription`.",
            (*_SUBSCRIPTION, "reason"),
            bound=Bound.SOURCE,
        )
        for unit, what in (("msg", "messages"), ("bytes", "bytes"))
    ),
    Metric(
        "rgd_subscription_dispatch_throttled_total",
        "Messages or bytes that a subscription's dispatcher asked for and was not granted.",
        (*_SUBSCRIPTION, "dimension"),
        bound=Bound.SOURCE,
    ),
    Metric(
        "rgd_subscription_dispatch_throttled_seconds_total",
        "Time for which answers asked a subscription's dispatcher to wait, overlaps once; none of `other`.",
        _SUBSCRIPTION,
        bound=Bound.SOURCE,
    ),
    Metric("rgd_ungoverned_total", "Requests to which no limit applied."),
    Metric(
        "rgd_policies_unknown_granted_total",
        "Requests granted because no policies were known (policies.unknown: allow).",
    ),
    Metric(
        "rgd_policies_unknown_refused_total",
        "Requests refused because no policies were known (policies.unknown: deny).",
    ),
    # The exchange.
    Metric("rgd_peers", "Other brokers known in the exchange."),
    Metric(
        "rgd_peer_age_seconds",
        "Time since the last message of a broker.",
        ("broker",),
        fold=Fold.MAX,
    ),
    Metric("rgd_reports_sent_total", "Reports and heartbeats sent."),
    Metric("rgd_reports_received_total", "Reports and heartbeats of peers."),
    Metric(
        "rgd_reports_dropped_total", "Messages from the exchange that were not used.", ("reason",)
    ),
    Metric(
        "rgd_rows_suppressed_total",
        "Rows not reported because they would change no broker's share enough.",
    ),
    Metric("rgd_group_slots", "Groups and kinds that this broker tracks, its own and its peers'."),
    Metric(
        "rgd_group_slots_unknown",
        "Tracked groups and kinds without policies here: peers' groups, or invented ones.",
    ),
    Metric(
        "rgd_group_slots_refused_total",
        "Peers' rows, and groups of this broker, for which there was no slot.",
    ),
    Metric(
        "rgd_groups_without_slot",
        "Groups in use here that are granted their floor because there is no slot for them.",
    ),
    Metric("rgd_build_info", "1; the labels say what runs.", ("version", "build")),
    Metric("rgd_ready", "What `/readyz` says: 1 where traffic should come here."),
    Metric("rgd_degraded", "Things that `/readyz` lists as degraded."),
    Metric("rgd_isolated", "1 while the exchange is unreachable, else 0."),
    Metric("rgd_name_conflict", "1 while another daemon uses this broker's name, else 0."),
    Metric(
        "rgd_weights_bounded_total",
        "Reports of peers with a weight out of bounds, which counted as the bound.",
    ),
    Metric(
        "rgd_policy_hash_conflict",
        "1 while a peer has had other policies in force for longer than a change takes, else 0.",
    ),
    Metric(
        "rgd_policies_old",
        "1 while the policies in force may not be the newest, because their source cannot be read.",
    ),
    Metric("rgd_policies_refused_total", "Records of the policies table that could not be used."),
    Metric(
        "rgd_policies_written_back_total", "Records written to a policies table that had lost them."
    ),
    Metric(
        "rgd_policies_lost_total",
        "Times the connection to the policies table was lost and opened again.",
    ),
    Metric(
        "rgd_policies_lacking",
        "Records that the policies table lacks; they are being written to it.",
    ),
    Metric(
        "rgd_policies_misplaced",
        "Policies whose last record in the table does not count, until they are written again.",
    ),
    ROUND_SECONDS,
    *BACKLOG_METRICS,
    *BACKLOG_POLL_METRICS,
    *STOCK_METRICS,
    # The usage log.
    Metric("rgd_log_entries_total", "Entries appended to the usage log."),
    Metric(
        "rgd_log_synced_index",
        "Highest index of the usage log known to be on disk; -1 before the first.",
    ),
    Metric("rgd_log_damaged_total", "Damaged places found in the usage log."),
    Metric("rgd_log_local_bytes", "Bytes of the usage log on this disk."),
    Metric(
        "rgd_log_segments_deleted_total",
        "Closed segments of the usage log that were deleted on this disk, by the limit that they exceeded.",
        ("reason",),
    ),
    Metric(
        "rgd_log_stopped",
        "1 while the usage log cannot be written; what waits is lost once too much does.",
    ),
    Metric(
        "rgd_log_lost_total",
        "Rounds, and entries of rounds, that could not be written to the usage log.",
    ),
    Metric(
        "rgd_log_cursor_lag",
        "Entries of the usage log that a reader has not acknowledged.",
        ("cursor",),
        fold=Fold.MAX,
    ),
    Metric(
        "rgd_log_cursor_holds",
        "1 while a reader's cursor holds back retention, 0 once it is beyond `log.cursor_hold_s` or "
        "`log.cursor_hold_bytes`.",
        ("cursor",),
        fold=Fold.MAX,
    ),
    Metric(
        "rgd_log_cursor_passed",
        "Entries that were deleted before a reader acknowledged them.",
        ("cursor",),
        fold=Fold.MAX,
    ),
    Metric(
        "rgd_log_files_set_aside_total",
        "Files beside the usage log that made no sense at the start and were renamed (`*.damaged-*`).",
    ),
    # Its tier; no series without one, and none once the log is closed.
    Metric(
        "rgd_upload_tier_lag",
        "Entries of closed segments that are not in the tier (KIP-963's UploadTierLag).",
        _LOG,
    ),
    Metric(
        "rgd_delete_tier_lag",
        "Entries of segments that retention gives up, marked or not, and that the tier still has "
        "(KIP-963's DeleteTierLag).",
        _LOG,
    ),
    Metric(
        "rgd_remote_copy_lag_bytes",
        "Bytes of closed segments, with their sparse indexes, that are not in the tier.",
        _LOG,
    ),
    Metric("rgd_remote_copy_lag_segments", "Closed segments that are not in the tier.", _LOG),
    Metric(
        "rgd_remote_delete_lag_bytes",
        "Bytes of segments that retention gives up and that the tier still has.",
        _LOG,
    ),
    Metric(
        "rgd_remote_delete_lag_segments",
        "Segments that retention gives up and that the tier still has.",
        _LOG,
    ),
    Metric(
        "rgd_remote_log_size_bytes",
        "Bytes of the segments in the tier, without their sparse indexes (KIP-963: RemoteLogSizeBytes).",
        _LOG,
    ),
    Metric("rgd_remote_log_segments", "Segments in the tier that are not marked.", _LOG),
    Metric(
        "rgd_remote_log_size_computation_seconds",
        "Time that it took to compute these two (KIP-963: RemoteLogSizeComputationTime).",
        _LOG,
    ),
    Metric(
        "rgd_remote_copy_errors_total",
        "Failures while the tier was looked at or a segment went up (KIP-963: RemoteCopyErrorsPerSec).",
        _LOG,
    ),
    Metric(
        "rgd_remote_delete_errors_total",
        "Failures while segments of the tier were marked or deleted (KIP-963: RemoteDeleteErrorsPerSec).",
        _LOG,
    ),
    Metric(
        "rgd_remote_fetch_errors_total",
        "Reads of the usage log that the tier failed or held up too long (KIP-963: RemoteFetchErrorsPerSec).",
        _LOG,
    ),
    Metric(
        "rgd_upload_oldest_seconds",
        "Time since the last entry of the oldest closed segment that is not in the tier; 0 if all are.",
        _LOG,
    ),
    Metric("rgd_tier_uploaded_bytes_total", "Bytes of segments uploaded."),
    Metric("rgd_tier_segments_deleted_total", "Segments deleted from the tier by retention."),
    Metric(
        "rgd_tier_failures_total", "Times the tier failed, each followed by a pause that grows."
    ),
    # Bugs.
    Metric(
        "rgd_internal_errors_total",
        "Exceptions that nobody foresaw, by the part that met and contained them.",
        ("where",),
    ),
    # The door.
    HTTP_REQUEST_SECONDS,
    Metric(
        "rgd_plane_restarts_total",
        "Processes that agree with the other brokers which took over from one that ended.",
    ),
    Metric(
        "rgd_http_credentials_old",
        "1: the file of tokens, or the certificate, changed and cannot be used; the old ones stay in force.",
        ("credential",),
    ),
    Metric("rgd_http_connections", "Open HTTP connections, those for probes too."),
    Metric("rgd_http_live_streams", "Open streams of `/v1/live`: live pages and `rgd top`."),
    Metric(
        "rgd_http_unauthorised_total",
        "Calls answered 401 or 403: `no_token`, `unknown_token`, or a known token without the `scope`.",
        ("reason",),
    ),
    Metric(
        "rgd_http_connections_refused_total",
        "HTTP connections refused beyond a limit: `connections_max`, `connections_per_address_max`.",
        ("reason",),
    ),
    Metric(
        "rgd_http_connections_closed_total",
        "HTTP connections closed early: `evicted` (idle, made room for another), `slow_request`, "
        "`slow_reader`, `unread_limit`.",
        ("reason",),
    ),
    Metric("rgd_http_unread_bytes", "Bytes of large answers not read by their callers yet."),
    Metric("rgd_http_body_bytes", "Bytes of request bodies in work."),
)

BY_NAME: Final = {metric.name: metric for metric in METRICS}
