"""Loads interceptors of the operator's own (`log.brokerEntryMetadataInterceptors`) once, at the start.

Law: one that cannot be loaded ends the start with its name and the remedy; nothing is left out silently.
"""

from collections.abc import Sequence
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
    try:
        made: BrokerEntryMetadataInterceptor = _class_of(name)()
        check_own_fields(made.intercept(0, 0))
    except KeyboardInterrupt:
        raise
    # Whatever foreign code raises is the fault of this setting.
    except BaseException as error:
        expected = (
            f"expected {name} to be a class that can be made without arguments and has "
            "intercept(timestamp_ms, index) -> bytes (protobuf fields above 2), installed where rgd is: "
            f"{type(error).__name__}: {error}"
        )
        fault = Fault("settings", "log.brokerEntryMetadataInterceptors", expected)
        raise ConfigError(fault) from error
    return made


def _class_of(name: str) -> Any:
    for found in entry_points(group=INTERCEPTOR_ENTRY_POINTS, name=name):
        return found.load()
    module, _, kind = name.rpartition(".")
    return getattr(import_module(module), kind)
