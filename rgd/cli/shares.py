"""`rgd shares`: the shares of a policy, computed by the daemon's own code.

Law: a daemon with the same usage map would grant the printed shares. `limits` are the shares as
whole numbers with the same (rounded) sum, remainders to the largest fractions (Hamilton's method).

PIP-82's policies use admitted rates, max-min uses demand. If only one of the two is
given, it is used for both. Without `--quota-bytes` there is one dimension in any unit. With it,
max-min divides messages and bytes as one decision, and PIP-82's policies divide them separately.
"""

# ruff: noqa: PLR0913 -- a command's parameters are its options
# ruff: noqa: PLC0415 -- what computes is imported by the command, so that --help stays fast

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer
import typer.core
from typing_extensions import override

from rgd.cli.table import print_table
from rgd.core.policies.model import Rate, Rates, SharePolicyName
from rgd.core.shares.model import PPM, WEIGHT_ONE, Row
from rgd.core.units import MILLI, QUOTA_MAX, Milli, Pair, to_milli, to_units
from rgd.errors import ConfigError, Fault

_RATES: Final = ("--wanted", "--admitted")
_RATES_BYTES: Final = ("--wanted-bytes", "--admitted-bytes")
MANY_VALUED: Final = frozenset({*_RATES, *_RATES_BYTES, "--weights", "--brokers"})
WEIGHT_MAX: Final = 1_000_000

SOURCE: Final = "command line"


class ManyValuesCommand(typer.core.TyperCommand):
    """A command without arguments whose list options take many values after one flag."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Rewrite `--wanted 80 20` as `--wanted 80 --wanted 20`, which the parser understands."""
        return super().parse_args(ctx, spread(args, MANY_VALUED))


def spread(args: Sequence[str], flags: Collection[str]) -> list[str]:
    """Repeat the flag before every value that follows it, up to the next option."""
    written: list[str] = []
    flag, is_waiting = "", False
    for arg in args:
        name, has_value, _ = arg.partition("=")
        if name in flags:
            flag, is_waiting = name, not has_value
            written.append(arg)
        elif flag and not _is_option(arg):
            written.extend([arg] if is_waiting else [flag, arg])
            is_waiting = False
        else:
            flag = ""
            written.append(arg)
    return written


def shares(
    *,
    policy: Annotated[
        SharePolicyName, typer.Option(help="Which share policy.")
    ] = SharePolicyName.MAX_MIN,
    quota: Annotated[float, typer.Option(metavar="Q", help="The cluster-wide quota.")],
    wanted: Annotated[
        list[str] | None, typer.Option(metavar="A B C", help="Each broker's demand.")
    ] = None,
    admitted: Annotated[
        list[str] | None, typer.Option(metavar="A B C", help="What each broker was admitted.")
    ] = None,
    weights: Annotated[
        list[str] | None, typer.Option(metavar="A B C", help="Each broker's weight (max-min).")
    ] = None,
    brokers: Annotated[
        list[str] | None, typer.Option(metavar="A B C", help="The brokers' names.")
    ] = None,
    quota_bytes: Annotated[
        float | None, typer.Option(metavar="Q", help="The quota in bytes, for both dimensions.")
    ] = None,
    wanted_bytes: Annotated[
        list[str] | None, typer.Option(metavar="A B C", help="Each broker's demand in bytes.")
    ] = None,
    admitted_bytes: Annotated[
        list[str] | None, typer.Option(metavar="A B C", help="What each was admitted in bytes.")
    ] = None,
    floor: Annotated[
        float, typer.Option(metavar="F", help="Part of the quota that is split evenly.")
    ] = 0.01,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Show the shares of a policy."""
    from rgd.core.shares.registry import allocate

    faults: list[Fault] = []
    given = {
        "--wanted": wanted,
        "--admitted": admitted,
        "--weights": weights,
        "--wanted-bytes": wanted_bytes,
        "--admitted-bytes": admitted_bytes,
    }
    columns = {flag: _numbers(flag, values or [], faults) for flag, values in given.items()}
    _check_rates({"--quota": quota, "--quota-bytes": quota_bytes}, floor, faults)
    _check_counts({**columns, "--brokers": brokers or []}, faults)
    _check_bytes(columns, faults, has_quota=quota_bytes is not None)
    if faults:
        raise ConfigError(*faults)
    rows = _rows(columns, names=brokers or [])
    quotas = Rates(to_milli(quota), None if quota_bytes is None else to_milli(quota_bytes))
    shares_milli = allocate(policy, quotas, rows, floor_ppm=round(floor * PPM))
    messages = _Dimension.of(quota, [share.messages for share in shares_milli])
    size = None
    if quota_bytes is not None:
        size = _Dimension.of(quota_bytes, [share.bytes for share in shares_milli])
    if as_json:
        _print_json(policy, messages, size)
    else:
        _print_table(policy, rows, messages, size, rates=columns)


@dataclass(frozen=True, slots=True)
class _Dimension:
    """One dimension of the answer."""

    quota: float
    shares: list[Milli]
    limits: list[int]

    @classmethod
    def of(cls, quota: float, shares: Sequence[Rate]) -> "_Dimension":
        """The shares of a limited quota."""
        limited = [share for share in shares if share is not None]
        return cls(quota, limited, whole(limited))

    def as_json(self) -> dict[str, object]:
        """The JSON contract for scripts."""
        return {
            "quota": int(self.quota) if self.quota.is_integer() else self.quota,
            "shares": [to_units(share) for share in self.shares],
            "limits": self.limits,
        }


def whole(shares_milli: Sequence[Milli]) -> list[int]:
    """Shares as whole numbers that sum to the rounded sum: the largest fractions round up."""
    parts = [share // MILLI for share in shares_milli]
    missing = (sum(shares_milli) + MILLI // 2) // MILLI - sum(parts)
    by_fraction = sorted(
        range(len(parts)), key=lambda place: (-(shares_milli[place] % MILLI), place)
    )
    for place in by_fraction[:missing]:
        parts[place] += 1
    return parts


def _is_option(arg: str) -> bool:
    """Whether an argument begins an option, as `-5` does not."""
    return arg.startswith("-") and not arg[1:2].isdigit() and arg[1:2] != "."


def _numbers(flag: str, texts: Sequence[str], faults: list[Fault]) -> list[float]:
    """The values of one option; NaN stands for an invalid one."""
    low, high = (1 / WEIGHT_ONE, WEIGHT_MAX) if flag == "--weights" else (0, QUOTA_MAX)
    numbers = [_number(text) for text in texts]
    wrong = [text for text, number in zip(texts, numbers, strict=True) if not low <= number <= high]
    if wrong:
        expected = f"expected numbers from {low:g} to {high:g}, got {', '.join(wrong)}"
        faults.append(Fault(SOURCE, flag, expected))
    return numbers


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _check_rates(quotas: Mapping[str, float | None], floor: float, faults: list[Fault]) -> None:
    for flag, quota in quotas.items():
        if quota is not None and not 1 / MILLI <= quota <= QUOTA_MAX:
            expected = f"expected a number from 0.001 to {QUOTA_MAX:g}, got {quota:g}"
            faults.append(Fault(SOURCE, flag, expected))
    if not 0 <= floor <= 1:
        faults.append(Fault(SOURCE, "--floor", f"expected a number from 0 to 1, got {floor:g}"))


def _check_bytes(
    columns: Mapping[str, Sequence[object]], faults: list[Fault], *, has_quota: bool
) -> None:
    """Refuse rates in bytes without a quota in bytes, and the reverse."""
    given = [flag for flag in _RATES_BYTES if columns[flag]]
    if has_quota and not given:
        expected = "expected a number for each broker, here or in --admitted-bytes"
        faults.append(Fault(SOURCE, "--wanted-bytes", expected))
    if given and not has_quota:
        expected = f"expected a quota in bytes, as {given[0]} is given"
        faults.append(Fault(SOURCE, "--quota-bytes", expected))


def _check_counts(columns: Mapping[str, Sequence[object]], faults: list[Fault]) -> None:
    given = {flag: len(values) for flag, values in columns.items() if values}
    count = given.get("--wanted") or given.get("--admitted")
    if count is None:
        expected = "expected a number for each broker, here or in --admitted"
        faults.append(Fault(SOURCE, "--wanted", expected))
        return
    for flag, values in given.items():
        if values != count:
            expected = f"expected {count} values, one for each broker, got {values}"
            faults.append(Fault(SOURCE, flag, expected))
    names = columns["--brokers"]
    if len(set(names)) != len(names):
        faults.append(Fault(SOURCE, "--brokers", "expected names that differ"))


def _rows(columns: Mapping[str, list[float]], *, names: Sequence[str]) -> list[Row]:
    wanted, admitted = _wanted_and_admitted(columns, _RATES)
    given, nothing = _wanted_and_admitted(columns, _RATES_BYTES), [0.0] * len(wanted)
    wanted_bytes, admitted_bytes = (one or nothing for one in given)
    weights = columns["--weights"] or [1.0] * len(wanted)
    # The order of names decides remainders, so padded numbers keep the given order.
    digits = len(str(len(wanted)))
    names = names or [f"broker-{number:0{digits}}" for number in range(1, len(wanted) + 1)]
    return [
        Row(
            name,
            admitted=Pair(to_milli(admitted[place]), to_milli(admitted_bytes[place])),
            wanted=Pair(to_milli(wanted[place]), to_milli(wanted_bytes[place])),
            weight=round(weights[place] * WEIGHT_ONE),
        )
        for place, name in enumerate(names)
    ]


def _wanted_and_admitted(
    columns: Mapping[str, list[float]], flags: tuple[str, str]
) -> tuple[list[float], list[float]]:
    """Use one of the two for both where the other is absent."""
    wanted, admitted = (columns[flag] for flag in flags)
    return wanted or admitted, admitted or wanted


def _print_json(policy: SharePolicyName, messages: _Dimension, size: _Dimension | None) -> None:
    result = {"policy": policy.value, **messages.as_json()}
    print(json.dumps(result if size is None else {**result, "bytes": size.as_json()}))


def _print_table(
    policy: SharePolicyName,
    rows: Sequence[Row],
    messages: _Dimension,
    size: _Dimension | None,
    *,
    rates: Mapping[str, list[float]],
) -> None:
    """Print it with the rates that were given: `admitted`, `wanted` or both."""
    given = [word for word in ("admitted", "wanted") if rates[f"--{word}"]]
    title = f"{policy}, quota {messages.quota:,}"
    dimensions = [("messages", "", messages)]
    if size is not None:
        title += f" messages and {size.quota:,} bytes"
        dimensions.append(("bytes", " bytes", size))
    columns, total = ["broker"], ["sum"]
    cells = [[row.broker] for row in rows]
    for of, suffix, result in dimensions:
        columns += [f"{word}{suffix}" for word in given]
        columns += [*(["weight"] if not suffix else []), f"share{suffix}", f"limit{suffix}"]
        for row, cell, share, limit in zip(rows, cells, result.shares, result.limits, strict=True):
            cell.extend(f"{to_units(getattr(getattr(row, word), of)):,.3f}" for word in given)
            cell.extend([f"{row.weight / WEIGHT_ONE:g}"] if not suffix else [])
            cell.extend((f"{to_units(share):,.3f}", f"{limit:,}"))
        total += [""] * (len(columns) - len(total) - 2)
        total += [f"{to_units(sum(result.shares)):,.3f}", f"{sum(result.limits):,}"]
    print_table(columns, cells, title=title, total=total)
