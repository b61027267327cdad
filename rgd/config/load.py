"""Process settings from their four sources: defaults < YAML file < environment < options.

Law: all faults are listed at once, each with its own source and key. So every source is checked
separately first, also where another one overrides it. A faulty value is then left
out, and the relations between settings are checked on the valid values.

Environment variables are `RGD_SECTION__KEY` (`RGD_CLUSTER` at the top). An unknown variable that starts with
`RGD_` is a fault, because a misspelt limit limits nothing. The environment is an
argument: only the command line reads the real one.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from rgd.config import groups
from rgd.config.document import Document, read_document
from rgd.config.faults import Faults, KeyPath, shown
from rgd.config.relations import GUARDED, RELATIONS
from rgd.config.settings import Settings
from rgd.config.values import expectation, is_optional
from rgd.errors import ConfigError, Fault

PREFIX: Final = "RGD_"
NESTED: Final = "__"

#: Variables of the client commands (`rgd.cli.asking`), and the name of the build (`rgd.app.telemetry`); they are no settings of a daemon.
OF_COMMANDS: Final = frozenset(
    {
        "RGD_BUILD",
        "RGD_URL",
        "RGD_TOKEN",
        "RGD_TOKEN_FILE",
        "RGD_TLS_CA",
        "RGD_TLS_CERT",
        "RGD_TLS_KEY",
    }
)

ENVIRONMENT: Final = "environment"
COMMAND_LINE: Final = "command line"


def fields_of(model: type[BaseModel], parent: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every setting of a model with its dotted key, sections after plain settings of their level."""
    for name, info in model.model_fields.items():
        key = f"{parent}.{name}" if parent else name
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield from fields_of(info.annotation, key)
        else:
            yield key, info


#: Every setting by its dotted key.
FIELDS: Final[Mapping[str, FieldInfo]] = dict(fields_of(Settings))

SECTIONS: Final = frozenset(key.partition(".")[0] for key in FIELDS if "." in key)

#: The keys at the top of a settings file; `rgd validate` distinguishes it from a groups file by them.
TOP_KEYS: Final = tuple(Settings.model_fields)


def variable_of(key: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + key.replace(".", NESTED).upper()


@dataclass(slots=True)
class _Layer:
    """The values of one source, by dotted key; faulty values are removed."""

    faults: Faults
    values: dict[str, object] = field(default_factory=dict)
    #: The name of a setting in faults, where it is not its dotted key.
    names: dict[str, str] = field(default_factory=dict)
    #: Settings whose value here was faulty.
    faulty: set[str] = field(default_factory=set)

    def wrong(self, key: str, expected: str) -> None:
        self.faults.add(self.names.get(key, key), expected)

    def check_values(self) -> None:
        """Check each value against its own setting, and drop the invalid ones."""
        try:
            _settings_of(self.values)
        except ValidationError as exc:
            for error in exc.errors(include_url=False):
                key = ".".join(map(str, error["loc"][:2]))
                if key in self.values:
                    value = self.values.pop(key)
                    self.faulty.add(key)
                    self.wrong(key, f"expected {expectation(FIELDS[key])}, got {shown(value)}")


def load_settings(
    file: Path | None,
    environ: Mapping[str, str],
    overrides: Mapping[str, object],
    *,
    insecure: bool = False,
) -> Settings:
    """Merge the sources.

    Args:
        file: the YAML file, if one was named.
        environ: environment variables; those without `RGD_` are left alone.
        overrides: options by dotted key; None is an option that was not given.
        insecure: allow listening beyond loopback without tokens.

    Raises:
        ConfigError: carries every fault of every source.
    """
    layers = [_option_layer(overrides), _environment_layer(environ)]
    unread: list[Fault] = []
    if file is not None:
        try:
            layers.append(_file_layer(read_document(file)))
        except ConfigError as exc:
            unread.extend(exc.faults)
    return _settled(layers, unread, insecure=insecure)


def settings_of(document: Document, *, insecure: bool = False) -> Settings:
    """The settings that one file makes on top of the defaults.

    Raises:
        ConfigError: carries every fault of the file.
    """
    return _settled([_file_layer(document)], [], insecure=insecure)


def _settled(layers: list[_Layer], unread: Iterable[Fault], *, insecure: bool) -> Settings:
    """Check the layers (the strongest first), then their combination."""
    for layer in layers:
        layer.check_values()
    settings = _settings_of(dict(chain(*(layer.values.items() for layer in reversed(layers)))))
    _check_relations(settings, layers, insecure=insecure)
    found = [*unread, *(fault for layer in reversed(layers) for fault in layer.faults.listed())]
    if found:
        raise ConfigError(*found)
    return settings


def _settings_of(values: Mapping[str, object]) -> Settings:
    """Settings of values by dotted key."""
    nested: dict[str, Any] = {}
    for key, value in values.items():
        section, dot, name = key.rpartition(".")
        (nested.setdefault(section, {}) if dot else nested)[name] = value
    return Settings(**nested)


def _check_relations(settings: Settings, layers: list[_Layer], *, insecure: bool) -> None:
    faulty = set().union(*(layer.faulty for layer in layers))
    for relation in RELATIONS if insecure else (*RELATIONS, GUARDED):
        values = relation.values(settings)
        if faulty.isdisjoint(relation.keys) and not relation.test(*values):
            layer, key = next(
                (layer, key) for layer in layers for key in relation.keys if key in layer.values
            )
            got = (
                f"{key} {'not set' if value is None else value}"
                for key, value in zip(relation.keys, values, strict=True)
            )
            layer.wrong(key, f"{relation.expected}; got {', '.join(got)}")


def _file_layer(document: Document) -> _Layer:
    layer = _Layer(document.faults)
    at = KeyPath(document.faults)
    top = at.mapping(document.value)
    for name, value in top.items():
        if name in SECTIONS:
            section_at = at.below(name)
            section = section_at.mapping(value)
            known = [key.partition(".")[2] for key in FIELDS if key.startswith(f"{name}.")]
            section_at.check_keys(section, known)
            layer.values.update((f"{name}.{key}", section[key]) for key in known if key in section)
        elif name in FIELDS:
            layer.values[name] = value
        elif name in groups.TOP_KEYS:
            expected = (
                "expected process settings; this belongs into the groups file (policies.file)"
            )
            at.below(name).wrong(expected)
        else:
            at.check_keys([name], TOP_KEYS)
    return layer


def _environment_layer(environ: Mapping[str, str]) -> _Layer:
    layer = _Layer(Faults(ENVIRONMENT))
    known = {variable_of(key): key for key in FIELDS}
    for name, text in environ.items():
        if not name.startswith(PREFIX) or name in OF_COMMANDS:
            continue
        key = known.get(name)
        if key is None:
            layer.faults.add(name, f"unknown setting{_meant(name, known, layer.faults)}")
            continue
        layer.names[key] = name
        # An empty variable means "not set", and also removes the file's value.
        layer.values[key] = None if not text and is_optional(FIELDS[key]) else text
    return layer


def _meant(name: str, known: Collection[str], faults: Faults) -> str:
    """Which variable may be meant: one of its section, where there is such a section."""
    section = "".join(name.rpartition(NESTED)[:2])
    has_section = any(one.startswith(section) for one in known) and section
    return faults.meant(name, known, section if has_section else PREFIX)


def _option_layer(overrides: Mapping[str, object]) -> _Layer:
    unknown = overrides.keys() - FIELDS.keys()
    assert not unknown, f"options that set no setting: {unknown}"
    given = {key: value for key, value in overrides.items() if value is not None}
    return _Layer(Faults(COMMAND_LINE), given)
