"""Every metric that rgd shows, declared once; `metrics.toml` is the table.

Law: a name is shown exactly as it is declared there, and nothing else is shown under `rgd_`. Base
units, `_total` on counters and on nothing else. docs/metrics.md is generated from the table.
Names under `pulsar_` are Pulsar's own, to the letter, so that its dashboards and alerts work.

Every metric says how its series are bounded (`Bound`), and what becomes of those beyond (`Fold`).
Process and interpreter metrics are prometheus_client's own and are added in `exposition`.
"""

import tomllib
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any, Final

from rgd.adapters.metrics.metric import Bound, Fold, Metric

#: How the keys of a metric are read; its help is text.
_KEYS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "labels": tuple,
    "fold": Fold,
    "bound": Bound,
    "buckets": tuple,
}


_TABLE: Final = files("rgd.adapters.metrics").joinpath("metrics.toml").read_text(encoding="utf-8")

#: All metrics, by name.
BY_NAME: Final = {
    name: Metric(name, **{key: _KEYS.get(key, str)(value) for key, value in row.items()})
    for name, row in tomllib.loads(_TABLE).items()
}
METRICS: Final = tuple(BY_NAME.values())

BACKLOG_CHECK_SECONDS: Final = BY_NAME["pulsar_storage_backlog_quota_check_duration_seconds"]
HTTP_REQUEST_SECONDS: Final = BY_NAME["rgd_http_request_seconds"]
ROUND_SECONDS: Final = BY_NAME["rgd_round_seconds"]
