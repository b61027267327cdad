"""Alert rules, dashboards and runbooks fit together and fit the metrics.

Not covered: whether an alert fires on its fault.
"""

import re
import subprocess
from typing import Any

import pytest
import yaml

from rgd.adapters.metrics.registry import METRICS
from rgd.app.events import EVENTS, runbook_anchor
from tests.support import components
from tests.tidy import tree

ALERTS = "observability/alerts.yaml"
RUNBOOKS = "docs/runbooks.md"

#: What a histogram's series end with.
_SUFFIXES = re.compile(r"_(bucket|count|sum)$")
_METRIC = re.compile(r"\b(?:rgd|pulsar)_[a-z_]+\b")


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
    command = [str(components.promtool()), "check", "rules", str(tree.ROOT / ALERTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout


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
    assert named - set(EVENTS) == set()


def test_every_metric_of_an_alert_exists() -> None:
    assert {rule["alert"]: unknown_metrics(rule["expr"]) for rule in rules()} == {
        rule["alert"]: set() for rule in rules()
    }


def test_a_metric_that_does_not_exist_is_found() -> None:
    query = 'rate(rgd_no_such_total[5m]) / rgd_round_seconds_bucket{le="1"}'
    assert unknown_metrics(query) == {"rgd_no_such_total"}
