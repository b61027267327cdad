"""`rgd shares`: what a share policy gives, by the daemon's own code.

Law: what is printed is what a daemon with the same map would grant. `limits` are the shares as
whole numbers with the same (rounded) sum, remainders to the largest fractions (Hamilton's method).

PIP-82's policies look at what was admitted, max-min at what is wanted: where only one of the two is
given it stands for both.
"""

# ruff: noqa: PLR0913 -- a command's parameters are its options

import json
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Final

import typer
import typer.core
from typing_extensions import override

from rgd.cli.table import print_table
from rgd.core.policies.model import SharePolicyName
from rgd.core.shares.model import PPM, WEIGHT_ONE, Row
from rgd.core.shares.registry import allocate
from rgd.core.units import MILLI, QUOTA_MAX, Milli, to_milli, to_units
from rgd.errors import ConfigError, Fault

MANY_VALUED: Final = frozenset({"--wanted", "--admitted", "--weights", "--brokers"})
WEIGHT_MAX: Final = 1_000_000

SOURCE: Final = "command line"


class ManyValuesCommand(typer.core.TyperCommand):
    """A command without arguments whose list options take many values after one flag."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write `--wanted 80 20` as `--wanted 80 --wanted 20`, which the parser knows."""
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
        list[str] | None, typer.Option(metavar="A B C", help="What each broker wants.")
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
    floor: Annotated[
        float, typer.Option(metavar="F", help="Part of the quota that is split evenly.")
    ] = 0.01,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Show the shares that a policy gives."""
    faults: list[Fault] = []
    columns = {
        flag: _numbers(flag, values or [], faults)
        for flag, values in (("--wanted", wanted), ("--admitted", admitted), ("--weights", weights))
    }
    _check_rates(quota, floor, faults)
    _check_counts({**columns, "--brokers": brokers or []}, faults)
    if faults:
        raise ConfigError(*faults)
    rows = _rows(columns, names=brokers or [])
    given = allocate(policy, to_milli(quota), rows, floor_ppm=round(floor * PPM))
    limits = whole(given)
    if as_json:
        told = {
            "policy": policy.value,
            "quota": int(quota) if quota.is_integer() else quota,
            "shares": [to_units(share) for share in given],
            "limits": limits,
        }
        print(json.dumps(told))
    else:
        _print_table(f"{policy}, quota {quota:,}", rows, given=given, limits=limits)


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
    """The values of one option; NaN stands for one that is none."""
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


def _check_rates(quota: float, floor: float, faults: list[Fault]) -> None:
    if not 1 / MILLI <= quota <= QUOTA_MAX:
        expected = f"expected a number from 0.001 to {QUOTA_MAX:g}, got {quota:g}"
        faults.append(Fault(SOURCE, "--quota", expected))
    if not 0 <= floor <= 1:
        faults.append(Fault(SOURCE, "--floor", f"expected a number from 0 to 1, got {floor:g}"))


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
    wanted = columns["--wanted"] or columns["--admitted"]
    admitted = columns["--admitted"] or wanted
    weights = columns["--weights"] or [1.0] * len(wanted)
    # Remainders go by the order of names, so the numbers are padded to keep the order given.
    digits = len(str(len(wanted)))
    names = names or [f"broker-{number:0{digits}}" for number in range(1, len(wanted) + 1)]
    return [
        Row(name, admitted=to_milli(has), wanted=to_milli(want), weight=round(weight * WEIGHT_ONE))
        for name, want, has, weight in zip(names, wanted, admitted, weights, strict=True)
    ]


def _print_table(
    title: str, rows: Sequence[Row], *, given: Sequence[Milli], limits: Sequence[int]
) -> None:
    cells = [
        (
            row.broker,
            f"{to_units(row.admitted):,.3f}",
            f"{to_units(row.wanted):,.3f}",
            f"{row.weight / WEIGHT_ONE:g}",
            f"{to_units(share):,.3f}",
            f"{limit:,}",
        )
        for row, share, limit in zip(rows, given, limits, strict=True)
    ]
    total = ("sum", "", "", "", f"{to_units(sum(given)):,.3f}", f"{sum(limits):,}")
    columns = ("broker", "admitted", "wanted", "weight", "share", "limit")
    print_table(columns, cells, title=title, total=total)
