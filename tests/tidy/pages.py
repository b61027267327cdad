"""The tables of docs/ that the code's declarations say: `make docs` writes them between their marks.

Law: what stands between `<!-- generated: NAME -->` and `<!-- end -->` is the table of that name in `TABLES`; the words around
it are written by hand.
"""

import re
import socket
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from pydantic.fields import FieldInfo

from rgd.adapters.metrics.labels import BOUNDS
from rgd.adapters.metrics.metric import Fold, Metric, MetricType
from rgd.adapters.metrics.registry import METRICS
from rgd.app.events import EVENTS, Event
from rgd.config.load import FIELDS
from rgd.config.relations import GUARDED, RELATIONS
from rgd.config.settings import Settings
from rgd.config.values import expectation, show_size, unit_of
from tests.tidy import tree

PAGES: Final = ("configuration", "metrics", "events")

_MARKED: Final = re.compile(r"(<!-- generated: (\w+) -->\n).*?(\n<!-- end -->)", re.DOTALL)


def path_of(page: str) -> Path:
    """Where a page is."""
    return tree.ROOT / "docs" / f"{page}.md"


def written(text: str) -> str:
    """A page with its tables as the code is now."""
    return _MARKED.sub(lambda found: found[1] + "\n".join(TABLES[found[2]]()) + found[3], text)


def _table(*columns: str) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"| {' | '.join('---' for _ in columns)} |"


def _settings() -> Iterator[str]:
    """The settings at the top, then those of each section, with its words."""
    yield from _section("The process", "", "")
    for name, info in Settings.model_fields.items():
        if name not in FIELDS:
            about = getattr(info.annotation, "__doc__", "") or ""
            yield ""
            yield from _section(f"`{name}`", f"{name}.", about.strip())


def _section(title: str, prefix: str, about: str) -> Iterator[str]:
    yield from (f"### {title}", "")
    yield from (about, "") if about else ()
    yield from _table("setting", "default", "expected", "what it does")
    for key, info in FIELDS.items():
        if key.startswith(prefix) if prefix else "." not in key:
            words = " ".join((info.description or "").split())
            cells = (f"`{key}`", _default(info), expectation(info), words)
            yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(info: FieldInfo) -> str:
    if info.default_factory is socket.gethostname:
        return "the host's name"
    value: Any = info.default
    if value is None:
        return "-"
    if isinstance(value, StrEnum):
        value = value.value
    return f"`{show_size(value) if unit_of(info) == 'bytes' else value}`"


def _relations() -> Iterator[str]:
    for relation in (*RELATIONS, GUARDED):
        yield f"- {relation.expected.removeprefix('expected ')}"


def _metrics() -> Iterator[str]:
    yield from _table("metric", "type", "labels", "meaning")
    yield from map(_metric_row, METRICS)


def _metric_row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels) or "-"
    about = metric.help
    if metric.fold is Fold.MAX:
        about += " `other` is the largest."
    if metric.type is MetricType.HISTOGRAM:
        bounds = ", ".join(f"{bound:g}" for bound in metric.buckets)
        about += f" Buckets: {bounds}."
    return f"| `{metric.name}` | {metric.type} | {labels} | {about} |"


def _bounds() -> Iterator[str]:
    yield from _table("label", "most values")
    yield from (f"| `{label}` | {most} |" for label, most in BOUNDS.items())


def runbook_anchor(alert: str) -> str:
    """The place of an alert's section in the documentation."""
    return f"runbooks.md#{alert.lower()}"


def _events() -> Iterator[str]:
    yield from _table("code", "level", "event", "meaning", "what to do")
    yield from map(_event_row, EVENTS.values())


def _event_row(event: Event) -> str:
    runbook = f" [Runbook]({runbook_anchor(event.runbook)})" if event.runbook else ""
    do = f"{event.do or 'Nothing.'}{runbook}"
    return f"| `{event.code}` | {event.level} | {event.event} | {event.meaning} | {do} |"


TABLES: Final[dict[str, Callable[[], Iterator[str]]]] = {
    "settings": _settings,
    "relations": _relations,
    "metrics": _metrics,
    "bounds": _bounds,
    "events": _events,
}


if __name__ == "__main__":
    for page in map(path_of, PAGES):
        page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
