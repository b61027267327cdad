"""Every call that logs an event of the daemon has its row in rgd/app/events.toml, and every row has its call.

Not covered: whether the table's prose is right.
"""

import ast
from collections.abc import Iterator

import pytest

from rgd.app.events import EVENTS, LIBRARY, add_code
from rgd.core.broker.effects import AlarmCode
from tests.tidy import tree

LEVELS = frozenset({"debug", "info", "warning", "error", "exception", "critical"})
#: The only names of loggers, so that no call is missed.
LOGGERS = frozenset({"_log", "log"})
#: The root logger is only set up, and what `rgd.pulsar.client` passes on is a library's.
OTHER = {"rgd/adapters/exchange/pulsar_log.py:CLIENT", "rgd/app/logs.py:root"}
#: Logs what its callers name, at one level.
AUDIT, AUDIT_CALL, AUDIT_LEVEL = "rgd/app/audit.py", "tell_written", "info"


def logged(source: ast.Module) -> Iterator[tuple[str, str]]:
    """Text and level of each call that logs; a text that is not written there is shown as code."""
    for node in ast.walk(source):
        match node:
            case ast.Call(func=ast.Attribute(ast.Name(name), level), args=[text, *_]) if (
                name in LOGGERS and level in LEVELS
            ):
                pass
            case ast.Call(func=ast.Name(name), args=[text, *_]) if name == AUDIT_CALL:
                level = AUDIT_LEVEL
            case _:
                continue
        yield (str(text.value) if isinstance(text, ast.Constant) else ast.unparse(text)), level


def of_tree() -> set[tuple[str, str]]:
    names = [name for name in tree.modules("rgd") if name != AUDIT]
    return {call for name in names for call in logged(tree.parsed(name))}


def test_every_logged_event_has_its_row_and_every_row_its_event() -> None:
    alarms = {code.value for code in AlarmCode}
    assert alarms <= set(EVENTS)
    rows = {(event.event, event.level) for event in EVENTS.values() if event.code not in alarms}
    assert of_tree() == rows


def test_a_text_belongs_to_one_code() -> None:
    assert len({event.event for event in EVENTS.values()}) == len(EVENTS)


def test_every_logger_has_a_name_that_is_looked_for() -> None:
    named = set()
    for name in tree.modules("rgd"):
        for node in ast.walk(tree.parsed(name)):
            match node:
                case ast.Assign([target], ast.Call(made)) | ast.AnnAssign(
                    target, value=ast.Call(made)
                ) if ast.unparse(made) in {"structlog.get_logger", "logging.getLogger"}:
                    named.add(f"{name}:{ast.unparse(target)}")
    assert {line for line in named if line.rpartition(":")[2] not in LOGGERS} == OTHER


@pytest.mark.parametrize(
    ("line", "code"),
    [
        pytest.param({"event": "tier fails: nothing is uploaded"}, "tier_fails", id="own"),
        pytest.param({"event": "Task was destroyed"}, LIBRARY, id="a library's"),
    ],
)
def test_a_line_has_its_code(line: dict[str, str], code: str) -> None:
    assert add_code(None, "info", line)["code"] == code
