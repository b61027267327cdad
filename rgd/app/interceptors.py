"""Loads interceptors of the operator's own (`log.brokerEntryMetadataInterceptors`) once, at the start.

Law: one that cannot be loaded ends the start with its name and the remedy; nothing is left out silently.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from rgd.config.values import INTERCEPTOR_ENTRY_POINTS
from rgd.errors import ConfigError, Fault
from rgd.ports.usagelog import BrokerEntryMetadataInterceptor
from rgd.wire.frame import check_own_fields


def load_interceptors(names: Sequence[str]) -> tuple[BrokerEntryMetadataInterceptor, ...]:
    """One of each class that is named, in order.

    Args:
        names: entry points of `INTERCEPTOR_ENTRY_POINTS`, or dotted paths `package.module.Class`.

    Raises:
        ConfigError: one cannot be imported or made, or its `intercept` does not work.
    """
    return tuple(map(_loaded, names))


def _loaded(name: str) -> BrokerEntryMetadataInterceptor:
    with _named(name):
        made: BrokerEntryMetadataInterceptor = _class_of(name)()
    if not callable(getattr(made, "intercept", None)):
        raise _fault(name, "it has no method `intercept`")
    with _named(name, "tried with (0, 0): "):
        check_own_fields(made.intercept(0, 0))
    return made


@contextmanager
def _named(name: str, when: str = "") -> Iterator[None]:
    """Whatever foreign code raises is the fault of this setting; only an interrupt is the operator's."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _fault(name, f"{when}{type(error).__name__}: {error}") from error


def _class_of(name: str) -> Any:
    for found in entry_points(group=INTERCEPTOR_ENTRY_POINTS, name=name):
        return found.load()
    module, _, kind = name.rpartition(".")
    return getattr(import_module(module), kind)


def _fault(name: str, why: str) -> ConfigError:
    expected = (
        f"expected {name} to be a class that can be made without arguments and has "
        f"intercept(timestamp_ms, index) -> bytes (protobuf fields above 2), installed where rgd is: {why}"
    )
    return ConfigError(Fault("settings", "log.brokerEntryMetadataInterceptors", expected))
