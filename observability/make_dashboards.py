"""Makes the Grafana dashboards beside it: `make dashboards` writes observability/dashboards/*.json.

A dashboard is a list of panels (`panels.toml`), each with a title, what it shows, and its queries. Grafana's JSON around them is the same for all. Each
dashboard takes the data source, the cluster and the brokers (`instance`) as variables; `cluster` is a label of the scraper's,
and matches everything where there is none.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
FOLDER: Final = HERE / "dashboards"
#: Panels in a row of Grafana's 24 columns.
COLUMNS, WIDTH, HEIGHT = 3, 8, 8

#: What stands in queries for what was chosen, or for how a rate is taken.
WORDS: Final[Mapping[str, str]] = {
    "$here": 'cluster=~"$cluster", instance=~"$broker"',
    "$in_group": 'group=~"$group", kind=~"$kind", dimension=~"$dimension"',
    "$in_namespace": 'namespace=~"$namespace"',
    "$rate": "$__rate_interval",
}

_ANY_WORD: Final = re.compile("|".join(rf"{re.escape(word)}\b" for word in WORDS))

#: Label of a metric by which a dashboard's own variables choose.
CHOICES: Final[Mapping[str, Mapping[str, str]]] = {
    "group": dict.fromkeys(("group", "kind", "dimension"), "rgd_quota"),
    "backlog": {"namespace": "pulsar_storage_backlog_size"},
}

#: Of these one is chosen: messages and bytes are not added up.
SINGLE: Final = frozenset({"kind", "dimension"})

SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


def dashboard(name: str, panels: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
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
    is_single = label in SINGLE
    query = f"label_values({metric}, {'instance' if label == 'broker' else label})"
    return {
        "name": label,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "definition": query,
        "query": {"query": query, "refId": label},
        "refresh": 2,
        "multi": not is_single,
        "includeAll": not is_single,
        # Also what has no such label.
        "allValue": ".*",
        "current": {} if is_single else {"text": "All", "value": "$__all"},
        "sort": 1,
    }


def _panel(place: int, panel: Mapping[str, Any]) -> dict[str, Any]:
    row, column = divmod(place, COLUMNS)
    is_stacked, queries = panel.get("stacked", False), panel["queries"]
    return {
        "id": place + 1,
        "type": panel.get("kind", "timeseries"),
        "title": panel["title"],
        "description": panel.get("about", ""),
        "datasource": SOURCE,
        "gridPos": {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {
            "defaults": {
                "unit": panel.get("unit", "short"),
                "min": 0,
                "custom": {
                    "fillOpacity": 20 if is_stacked else 0,
                    "stacking": {"mode": "normal" if is_stacked else "none"},
                },
            },
            "overrides": [_line("quota")] if "quota" in queries else [],
        },
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": SOURCE,
                "expr": _ANY_WORD.sub(lambda word: WORDS[word[0]], query),
                "legendFormat": legend,
            }
            for number, (legend, query) in enumerate(queries.items())
        ],
    }


def _line(name: str) -> dict[str, Any]:
    """A series that is drawn over the stack."""
    looks = {"custom.stacking": {"mode": "none"}, "custom.fillOpacity": 0, "custom.lineWidth": 2}
    properties = [{"id": key, "value": value} for key, value in looks.items()]
    return {"matcher": {"id": "byName", "options": name}, "properties": properties}


def texts() -> dict[str, str]:
    """The text of each file, by its name."""
    dashboards = tomllib.loads((HERE / "panels.toml").read_text(encoding="utf-8"))
    return {
        f"{name}.json": json.dumps(dashboard(name, panels), indent=1) + "\n"
        for name, panels in dashboards.items()
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in texts().items():
        (FOLDER / name).write_text(text)
