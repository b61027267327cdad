"""Makes the Grafana dashboards beside it: `make dashboards` writes observability/dashboards/*.json.

A dashboard is a list of panels, each with a title, what it shows, and its queries. Grafana's JSON around them is the same for all. Each
dashboard takes the data source, the cluster and the brokers (`instance`) as variables; `cluster` is a label of the scraper's,
and matches everything where there is none.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent / "dashboards"
#: Which series of a metric belong to what was chosen.
HERE: Final = 'cluster=~"$cluster", instance=~"$broker"'
#: Panels in a row of Grafana's 24 columns.
COLUMNS, WIDTH, HEIGHT = 3, 8, 8
#: How a counter's rate is taken.
RATE: Final = "$__rate_interval"


@dataclass(frozen=True)
class Panel:
    """One picture: queries by their legends; `HERE` stands for the chosen daemons."""

    title: str
    about: str
    queries: Mapping[str, str]
    unit: str = "short"
    kind: str = "timeseries"
    stacked: bool = False


#: The processes of a daemon, by what they do: how the names of their figures begin.
PROCESSES: Final = {"{{instance}} agrees": "process", "{{instance}} answers": "rgd_gate_process"}


def rate(metric: str, more: str = "") -> str:
    """A counter's rate on the chosen daemons."""
    return f"rate({metric}{{{HERE}{more}}}[{RATE}])"


def of(metric: str, more: str = "") -> str:
    """A gauge on the chosen daemons."""
    return f"{metric}{{{HERE}{more}}}"


def quantile(metric: str, part: float, by: str) -> str:
    """A quantile of a histogram."""
    return f"histogram_quantile({part}, sum by (le, {by}) ({rate(f'{metric}_bucket')}))"


GROUP: Final = ', group=~"$group", kind=~"$kind", dimension=~"$dimension"'
MESSAGES: Final = ', dimension="messages"'
TOPIC: Final = ', namespace=~"$namespace"'

CLUSTER: Final = (
    Panel("Ready", "0: /readyz says 503.", {"{{instance}}": of("rgd_ready")}, kind="stat"),
    Panel(
        "Isolated",
        "1: the exchange is unreachable.",
        {"{{instance}}": of("rgd_isolated")},
        kind="stat",
    ),
    Panel(
        "Degraded",
        "How many things /readyz names.",
        {"{{instance}}": of("rgd_degraded")},
        kind="stat",
    ),
    Panel(
        "Other daemons known",
        "Fewer than there are: a daemon is cut off.",
        {"{{instance}}": of("rgd_peers")},
    ),
    Panel(
        "Policies",
        "1: old, in conflict with a peer's, or a name conflict.",
        {
            "old {{instance}}": of("rgd_policies_old"),
            "differ {{instance}}": of("rgd_policy_hash_conflict"),
            "name {{instance}}": of("rgd_name_conflict"),
        },
    ),
    Panel(
        "Versions",
        "Daemons by release.",
        {"{{version}}": f"count by (version) ({of('rgd_build_info')})"},
        stacked=True,
    ),
    Panel(
        "Admitted by daemon",
        "Messages a second, of all groups.",
        {"{{instance}}": f"sum by (instance) ({rate('rgd_admitted_total', MESSAGES)})"},
        stacked=True,
    ),
    Panel(
        "Refused by level",
        "Messages a second, by the limit that refused them.",
        {"{{limited_by}}": f"sum by (limited_by) ({rate('rgd_refused_total', MESSAGES)})"},
        stacked=True,
    ),
    Panel(
        "Requests by route",
        "A second; arrays count once.",
        {
            "{{route}} {{status}}": f"sum by (route, status) ({rate('rgd_http_request_seconds_count')})"
        },
    ),
    Panel(
        "Time of requests, p99",
        "By route.",
        {"{{route}}": quantile("rgd_http_request_seconds", 0.99, "route")},
        unit="s",
    ),
    Panel(
        "Connections",
        "Open, and refused a second.",
        {
            "open {{instance}}": of("rgd_http_connections"),
            "refused {{reason}}": f"sum by (reason) ({rate('rgd_http_connections_refused_total')})",
        },
    ),
    Panel(
        "Bugs contained",
        "Internal errors a second, by part.",
        {"{{where}}": f"sum by (where) ({rate('rgd_internal_errors_total')})"},
    ),
    Panel(
        "Processor",
        "Cores.",
        {does: rate(f"{of_it}_cpu_seconds_total") for does, of_it in PROCESSES.items()},
    ),
    Panel(
        "Memory",
        "Resident.",
        {does: of(f"{of_it}_resident_memory_bytes") for does, of_it in PROCESSES.items()},
        unit="bytes",
    ),
)

GROUPS: Final = (
    Panel(
        "Admitted, and the quota",
        "A second, stacked by daemon; the line is the quota of the whole cluster.",
        {
            "{{instance}}": f"sum by (instance) ({rate('rgd_admitted_total', GROUP)})",
            "quota": f"sum(max by (group, kind, dimension) ({of('rgd_quota', GROUP)}))",
        },
        stacked=True,
    ),
    Panel(
        "Wanted",
        "Demand a second, also what was refused.",
        {"{{instance}}": f"sum by (instance) ({of('rgd_wanted', GROUP)})"},
        stacked=True,
    ),
    Panel(
        "Shares",
        "A second.",
        {"{{instance}}": f"sum by (instance) ({of('rgd_share', GROUP)})"},
        stacked=True,
    ),
    Panel(
        "Refused by level",
        "A second.",
        {"{{limited_by}}": f"sum by (limited_by) ({rate('rgd_refused_total', GROUP)})"},
        stacked=True,
    ),
    Panel(
        "Demand by group, of the quota",
        "The ten groups with the highest pressure; above 1 some work has to be refused.",
        {
            "{{group}} {{kind}} {{dimension}}": "topk(10, sum by (group, kind, dimension) "
            f"({of('rgd_wanted', GROUP)}) / max by (group, kind, dimension) ({of('rgd_quota', GROUP)}))"
        },
        unit="percentunit",
    ),
    Panel(
        "Leases",
        "Tokens in leases, and leases that began or ended a second.",
        {
            "held {{group}}": f"sum by (group) ({of('rgd_leased', GROUP)})",
            "{{event}}": f"sum by (event) ({rate('rgd_lease_events_total')})",
        },
    ),
    Panel(
        "Shadows and soft limits",
        "What a shadow would have refused, and what went beyond a soft limit, a second.",
        {
            "shadow {{group}}": f"sum by (group) ({rate('rgd_shadow_refused_total', GROUP)})",
            "soft {{group}}": f"sum by (group) ({rate('rgd_over_total', GROUP)})",
        },
    ),
)

EXCHANGE: Final = (
    Panel(
        "Age of peers",
        "Since the last report of each; about a round.",
        {"{{instance}} of {{broker}}": of("rgd_peer_age_seconds")},
        unit="s",
    ),
    Panel(
        "Reports",
        "Sent and received a second.",
        {
            "sent {{instance}}": rate("rgd_reports_sent_total"),
            "received {{instance}}": rate("rgd_reports_received_total"),
        },
    ),
    Panel(
        "Reports dropped",
        "A second, by reason.",
        {"{{reason}}": f"sum by (reason) ({rate('rgd_reports_dropped_total')})"},
    ),
    Panel(
        "Rows suppressed",
        "A second: rows that did not have to be sent.",
        {"{{instance}}": rate("rgd_rows_suppressed_total")},
    ),
    Panel(
        "Time of a round, p99",
        "Near the length of a round: overloaded.",
        {"{{instance}}": quantile("rgd_round_seconds", 0.99, "instance")},
        unit="s",
    ),
    Panel(
        "Slots of groups",
        "In use, of unknown groups, and groups without one.",
        {
            "used {{instance}}": of("rgd_group_slots"),
            "unknown {{instance}}": of("rgd_group_slots_unknown"),
            "without {{instance}}": of("rgd_groups_without_slot"),
        },
    ),
    Panel(
        "Policies table",
        "Records refused, written back, and connections lost, a second.",
        {
            "refused": f"sum({rate('rgd_policies_refused_total')})",
            "written back": f"sum({rate('rgd_policies_written_back_total')})",
            "lost": f"sum({rate('rgd_policies_lost_total')})",
        },
    ),
    Panel(
        "Stock brokers",
        "Clock ahead of this machine's, by broker.",
        {"{{broker}}": of("rgd_stock_clock_ahead_seconds")},
        unit="s",
    ),
    Panel(
        "Stock brokers' reports",
        "A second.",
        {
            "sent": f"sum({rate('rgd_stock_reports_sent_total')})",
            "received": f"sum({rate('rgd_stock_reports_received_total')})",
            "dropped {{reason}}": f"sum by (reason) ({rate('rgd_stock_reports_dropped_total')})",
        },
    ),
)

LOG: Final = (
    Panel(
        "Stopped",
        "1: the log cannot be written.",
        {"{{instance}}": of("rgd_log_stopped")},
        kind="stat",
    ),
    Panel("Entries", "A second.", {"{{instance}}": rate("rgd_log_entries_total")}),
    Panel(
        "Lost or damaged",
        "A second.",
        {
            "lost {{instance}}": rate("rgd_log_lost_total"),
            "damaged {{instance}}": rate("rgd_log_damaged_total"),
        },
    ),
    Panel("On this disk", "", {"{{instance}}": of("rgd_log_local_bytes")}, unit="bytes"),
    Panel(
        "Deleted segments",
        "A second, by limit.",
        {"{{reason}}": f"sum by (reason) ({rate('rgd_log_segments_deleted_total')})"},
    ),
    Panel(
        "Readers behind",
        "Entries that a reader has not acknowledged.",
        {"{{instance}} {{cursor}}": of("rgd_log_cursor_lag")},
    ),
    Panel(
        "Deleted unread",
        "Entries, by reader.",
        {"{{instance}} {{cursor}}": of("rgd_log_cursor_passed")},
    ),
    Panel(
        "Waiting for the tier",
        "Bytes of closed segments.",
        {"{{instance}}": of("rgd_remote_copy_lag_bytes")},
        unit="bytes",
    ),
    Panel(
        "Oldest segment that waits", "", {"{{instance}}": of("rgd_upload_oldest_seconds")}, unit="s"
    ),
    Panel("In the tier", "", {"{{instance}}": of("rgd_remote_log_size_bytes")}, unit="bytes"),
    Panel(
        "Uploaded", "A second.", {"{{instance}}": rate("rgd_tier_uploaded_bytes_total")}, unit="Bps"
    ),
    Panel(
        "Failures of the tier",
        "A second: of all, of deletions, of reads.",
        {
            "all {{instance}}": rate("rgd_tier_failures_total"),
            "deletions {{instance}}": rate("rgd_remote_delete_errors_total"),
            "reads {{instance}}": rate("rgd_remote_fetch_errors_total"),
        },
    ),
)

BACKLOG: Final = (
    Panel(
        "Blocked topics",
        "Publishing is held or refused.",
        {"{{instance}}": of("rgd_backlog_blocked_topics")},
        stacked=True,
    ),
    Panel(
        "Largest backlogs",
        "Ten topics.",
        {"{{topic}}": f"topk(10, {of('pulsar_storage_backlog_size', TOPIC)})"},
        unit="bytes",
    ),
    Panel(
        "Oldest backlogs",
        "Ten topics.",
        {"{{topic}}": f"topk(10, {of('pulsar_storage_backlog_age_seconds', TOPIC)})"},
        unit="s",
    ),
    Panel(
        "Subscriptions behind",
        "Messages, ten subscriptions.",
        {
            "{{topic}} {{subscription}}": f"topk(10, {of('pulsar_subscription_back_log_no_delayed', TOPIC)})"
        },
    ),
    Panel(
        "Throttled dispatch",
        "Events a second, by limit.",
        {
            "{{reason}}": "sum by (reason) "
            f"({rate('pulsar_subscription_dispatch_throttled_msg_events', TOPIC)}"
            f" + {rate('pulsar_subscription_dispatch_throttled_bytes_events', TOPIC)})"
        },
    ),
    Panel(
        "Publishing refused",
        "A second, by quota.",
        {
            "{{quota_type}} held={{held}}": f"sum by (quota_type, held) ({rate('rgd_backlog_refused_total')})"
        },
    ),
    Panel(
        "Evictions",
        "A second, by outcome.",
        {"{{outcome}}": f"sum by (outcome) ({rate('rgd_backlog_evictions_total')})"},
    ),
    Panel(
        "Polls",
        "Failures a second, and seconds of a poll.",
        {
            "failures {{instance}}": rate("rgd_backlog_poll_failures_total"),
            "seconds {{instance}}": of("rgd_backlog_poll_seconds"),
        },
    ),
    Panel(
        "Topics",
        "Known, and unreadable.",
        {
            "known {{instance}}": of("rgd_backlog_topics"),
            "unreadable {{instance}}": of("rgd_backlog_topics_unreadable"),
        },
    ),
)

#: Label of a metric by which a dashboard's own variables choose.
CHOICES: Final[Mapping[str, Mapping[str, str]]] = {
    "group": dict.fromkeys(("group", "kind", "dimension"), "rgd_quota"),
    "backlog": {"namespace": "pulsar_storage_backlog_size"},
}

DASHBOARDS: Final[Mapping[str, tuple[Panel, ...]]] = {
    "cluster": CLUSTER,
    "group": GROUPS,
    "exchange": EXCHANGE,
    "log": LOG,
    "backlog": BACKLOG,
}

SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


def dashboard(name: str, panels: Iterable[Panel]) -> dict[str, Any]:
    """One dashboard as Grafana imports it."""
    choices = {"cluster": "rgd_build_info", "broker": "rgd_build_info", **CHOICES.get(name, {})}
    chosen = [
        {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "data source"}
    ]
    return {
        "uid": f"rgd-{name}",
        "title": f"rgd / {name}",
        "tags": ["rgd"],
        "schemaVersion": 38,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [*chosen, *(_variable(label, choices[label]) for label in choices)]},
        "links": [
            {
                "type": "dashboards",
                "tags": ["rgd"],
                "title": "rgd",
                "asDropdown": True,
                "keepTime": True,
                "includeVars": True,
            }
        ],
        "panels": [_panel(place, panel) for place, panel in enumerate(panels)],
    }


def _variable(label: str, metric: str) -> dict[str, Any]:
    query = f"label_values({metric}, {'instance' if label == 'broker' else label})"
    return {
        "name": label,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "definition": query,
        "query": {"query": query, "refId": label},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        # Also what has no such label.
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "sort": 1,
    }


def _panel(place: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(place, COLUMNS)
    stacking = {"mode": "normal" if panel.stacked else "none"}
    is_filled = 20 if panel.stacked else 0
    return {
        "id": place + 1,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": SOURCE,
        "gridPos": {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0,
                "custom": {"fillOpacity": is_filled, "stacking": stacking},
            },
            "overrides": [_line("quota")] if "quota" in panel.queries else [],
        },
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": SOURCE,
                "expr": query,
                "legendFormat": legend,
            }
            for number, (legend, query) in enumerate(panel.queries.items())
        ],
    }


def _line(name: str) -> dict[str, Any]:
    """A series that is drawn over the stack."""
    looks = {"custom.stacking": {"mode": "none"}, "custom.fillOpacity": 0, "custom.lineWidth": 2}
    properties = [{"id": key, "value": value} for key, value in looks.items()]
    return {"matcher": {"id": "byName", "options": name}, "properties": properties}


def texts() -> dict[str, str]:
    """The text of each file, by its name."""
    return {
        f"{name}.json": json.dumps(dashboard(name, panels), indent=1) + "\n"
        for name, panels in DASHBOARDS.items()
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in texts().items():
        (FOLDER / name).write_text(text)
