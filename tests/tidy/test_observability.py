"""Alert rules, dashboards and runbooks fit together and fit the metrics.

Pages of /metrics that real daemons showed under each fault are in tests/data/faults (tests/support/recorded_faults.py); promtool replays
them. Not covered: whether a fault still shows as it was recorded; that is tested where the fault is.
"""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from observability.make_dashboards import FOLDER, texts
from rgd.adapters.metrics.registry import METRICS
from rgd.app.events import EVENTS
from tests.support import components
from tests.support.recorded_faults import FAULTS, PAGES
from tests.tidy import tree
from tests.tidy.pages import runbook_anchor

ALERTS = "observability/alerts.yaml"
RUNBOOKS = "docs/runbooks.md"

#: What a histogram's series end with.
_SUFFIXES = re.compile(r"_(bucket|count|sum)$")
#: Not those of processes, which the Python client makes.
_METRIC = re.compile(r"\b(?:rgd(?!_gate_process)|pulsar)_[a-z_]+\b")


#: Scrapes of a page, 15 s apart: 20 minutes.
HELD = 80
#: Scrapes of the last page where it does not last, and the first one comes back: a daemon that yields its name is
#: started again under another one, and a bug is over.
BRIEF = 3
BRIEFLY = {"a_name_is_taken", "a_view_has_a_bug"}
FIRED = 'group by (alertname) (last_over_time(ALERTS{alertstate="firing"}[1h]))'


def promtool(*words: str | Path) -> None:
    """Run promtool, which finds nothing wrong."""
    command = [str(word) for word in (components.promtool(), *words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def rules() -> list[dict[str, Any]]:
    """All alert rules."""
    groups = yaml.safe_load(tree.text(ALERTS))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def runbooks() -> dict[str, str]:
    """The text of each section, by its heading."""
    _, *sections = re.split(r"^## (.+)$", tree.text(RUNBOOKS), flags=re.MULTILINE)
    return dict(zip(sections[::2], sections[1::2], strict=True))


def unknown_metrics(query: str) -> set[str]:
    """The names in a query that docs/metrics.md does not have."""
    known = {metric.name for metric in METRICS}
    return {name for name in _METRIC.findall(query) if not {name, _SUFFIXES.sub("", name)} & known}


def test_the_rules_are_rules() -> None:
    promtool("check", "rules", tree.ROOT / ALERTS)


def test_alerts_and_runbooks_have_the_same_names() -> None:
    """Also the other way round: a runbook that nothing leads to is never read."""
    alerts = [rule["alert"] for rule in rules()]
    assert sorted(alerts) == sorted(runbooks())
    assert {event.runbook for event in EVENTS.values()} <= {*alerts, ""}
    for rule in rules():
        assert rule["annotations"]["runbook_url"] == f"docs/{runbook_anchor(rule['alert'])}"
        assert rule["labels"]["severity"] in {"page", "ticket"}


@pytest.mark.parametrize("name", runbooks())
def test_a_runbook_goes_from_the_symptom_over_three_commands_to_the_remedy(name: str) -> None:
    text = runbooks()[name]
    symptom, *commands = re.split(r"^\d\. ", text.partition("\n**Do**")[0], flags=re.MULTILINE)
    assert symptom.strip().startswith("**Users see**")
    assert len(commands) == 3
    assert all(command.startswith("`") for command in commands)
    assert "\n**Do**" in text
    named = {
        code for group in re.findall(r"'\"\(?([a-z_|]+)\)?\"'", text) for code in group.split("|")
    }
    assert {code for code, event in EVENTS.items() if event.runbook == name} <= named <= set(EVENTS)


def test_every_metric_of_an_alert_exists() -> None:
    assert {rule["alert"]: unknown_metrics(rule["expr"]) for rule in rules()} == {
        rule["alert"]: set() for rule in rules()
    }


def test_the_dashboards_are_fresh() -> None:
    found = {file.name: file.read_text() for file in FOLDER.glob("*.json")}
    assert found == texts(), "run: make dashboards"


def test_every_query_of_a_dashboard_is_one_of_metrics_that_exist(tmp_path: Path) -> None:
    """What Grafana fills in is filled in, and promtool reads the queries as rules."""
    dashboards = [json.loads(text) for text in texts().values()]
    assert len({board["uid"] for board in dashboards}) == len(dashboards) == 5
    queries = [
        target["expr"]
        for board in dashboards
        for panel in board["panels"]
        for target in panel["targets"]
    ]
    single = {one["name"] for board in dashboards for one in choices(board) if not one["multi"]}
    assert single == {"kind", "dimension"}  # messages are not added to bytes
    asked = {variable["query"]["query"] for board in dashboards for variable in choices(board)}
    assert [query for query in [*queries, *asked] if unknown_metrics(query)] == []
    rules = [
        {"record": f"r{place}", "expr": query.replace("$__rate_interval", "5m")}
        for place, query in enumerate(queries)
    ]
    file = tmp_path / "rules.yaml"
    file.write_text(json.dumps({"groups": [{"name": "all", "rules": rules}]}))
    promtool("check", "rules", file)


def choices(board: dict[str, Any]) -> list[dict[str, Any]]:
    """The variables of a dashboard that are read from Prometheus."""
    return [one for one in board["templating"]["list"] if one["type"] == "query"]


def held(value: float | None, times: int) -> str:
    """A value that is scraped so often, as promtool writes it."""
    return f"_x{times}" if value is None else f"{value}x{times - 1}"


def replay(fault: str, alerts: set[str]) -> dict[str, object]:
    """A test of promtool: nothing fires over the page before the fault, and these alerts over the one after."""
    pages = json.loads((PAGES / f"{fault}.json").read_text())
    times = [*([1] * (len(pages["after"]) - 1)), BRIEF if fault in BRIEFLY else HELD]
    lasting = [(pages["before"], HELD), *zip(pages["after"], times, strict=True)]
    if fault in BRIEFLY:
        lasting.append((pages["before"], HELD))
    names = set().union(*(page for page, _ in lasting))
    series = [
        {"series": key, "values": " ".join(held(page.get(key), n) for page, n in lasting)}
        for key in sorted(names)
    ]
    fired = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(alerts)]
    return {
        "name": fault,
        "interval": "15s",
        "input_series": series,
        "promql_expr_test": [
            {"expr": FIRED, "eval_time": "19m", "exp_samples": []},
            {"expr": FIRED, "eval_time": "41m", "exp_samples": fired},
        ],
    }


def test_every_alert_has_a_fault_that_was_recorded() -> None:
    assert set().union(*FAULTS.values()) == {rule["alert"] for rule in rules()}


def test_every_alert_fires_on_its_fault_and_none_before_it(tmp_path: Path) -> None:
    tests = [replay(fault.__name__, alerts) for fault, alerts in FAULTS.items()]
    file = tmp_path / "replay.yaml"
    whole = {"rule_files": [str(tree.ROOT / ALERTS)], "evaluation_interval": "15s", "tests": tests}
    # JSON is YAML.
    file.write_text(json.dumps(whole))
    promtool("test", "rules", file)
