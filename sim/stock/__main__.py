"""`python -m sim.stock`: stock brokers beside rgd daemons, every step scenario in some sizes.

Contract (docs/stock-brokers.md): a line for each step on standard output, or with `--markdown` the rows
of a table. Exit codes: 0 every bound holds that is in reach, 1 one does not, 2 asked wrongly.
"""

import argparse
from collections.abc import Iterator, Sequence

from sim.exiting import exit_with
from sim.stock.run import PERIODS, PERIODS_MIN, Figures, Size, run
from sim.stock.scenarios import SCENARIOS, StockScenario

EXIT_DONE, EXIT_FAILED = 0, 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.periods < PERIODS_MIN:
        parser.error(f"--periods: expected at least {PERIODS_MIN}, got {options.periods}")
    if options.list:
        for scenario in SCENARIOS.values():
            reason = scenario.reason(2)
            reach = f" (out of reach: {reason})" if reason else ""
            print(f"{scenario.name}: {scenario.title}{reach}")
        return EXIT_DONE
    is_broken = False
    for scenario, size in _runs(options):
        figures = run(scenario, size, seed=options.seed, periods=options.periods)
        for number, one in enumerate(figures, 1):
            print(_line(scenario, size, number, one, markdown=options.markdown), flush=True)
            is_broken |= bool(one.faults) and not scenario.reason(size.stock)
    return EXIT_FAILED if is_broken else EXIT_DONE


def make_parser() -> argparse.ArgumentParser:
    """Every option."""
    parser = argparse.ArgumentParser(
        prog="python -m sim.stock", description="Stock Pulsar brokers beside rgd daemons."
    )
    add = parser.add_argument
    add("--list", action="store_true", help="print the scenarios")
    add("--scenario", choices=sorted(SCENARIOS), nargs="+", metavar="NAME", help="default: all")
    add("--size", type=_size, nargs="+", default=[Size(1, 1)], metavar="STOCKxRGD")
    add("--period-s", type=int, default=5, help="the stock brokers' period")
    add("--periods", type=int, default=PERIODS, help="of a step; the last six are measured")
    add("--seed", type=int, default=0)
    add("--markdown", action="store_true", help="rows of a table")
    return parser


def _runs(options: argparse.Namespace) -> Iterator[tuple[StockScenario, Size]]:
    for size in options.size:
        sized = Size(size.stock, size.rgd, options.period_s)
        for name in options.scenario or SCENARIOS:
            scenario = SCENARIOS[name]
            if size.stock >= scenario.stock_least and size.rgd >= scenario.rgd_least:
                yield scenario, sized


def _line(
    scenario: StockScenario, size: Size, number: int, figures: Figures, *, markdown: bool
) -> str:
    faults = "; ".join(figures.faults) or "ok"
    cells = (
        f"{scenario.name} {number}",
        f"{size.stock}x{size.rgd}",
        f"{_part(figures.rgd, figures.rgd_part)}",
        f"{_part(figures.stock, figures.stock_part)}",
        f"{figures.least:.2f}",
        f"{figures.peak:.2f}",
        faults,
    )
    return f"| {' | '.join(cells)} |" if markdown else "  ".join(cells)


def _part(rate: float, part: float) -> str:
    return f"{rate:.0f}/{part:.0f}" + (f" ({rate / part:.3f})" if part else "")


def _size(text: str) -> Size:
    stock, _, rgd = text.partition("x")
    if not (stock.isdigit() and rgd.isdigit() and int(stock) > 0 and int(rgd) > 0):
        raise argparse.ArgumentTypeError(f"expected STOCKxRGD, got {text!r}")
    return Size(int(stock), int(rgd))


if __name__ == "__main__":
    exit_with(main)
