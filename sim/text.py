"""What a person reads on a terminal: the list of scenarios, and the figures of a run."""

from collections.abc import Iterable

import numpy as np

from sim.recording import Recording
from sim.run import Outcome
from sim.scenario import Scenario

#: Brokers that a table shows; of more, the first ones.
_BROKERS_MAX = 20


def listing(scenarios: Iterable[Scenario]) -> str:
    """Every scenario with its defaults."""
    return "\n".join(line for scenario in scenarios for line in _described(scenario))


def report(outcome: Outcome) -> str:
    """Figures, targets, broken laws, and a line for each broker."""
    scenario = outcome.scenario
    lines = [
        f"{scenario.name}: {scenario.title}",
        f"policy {outcome.policy}, seed {outcome.seed}, {scenario.daemons} daemons, "
        f"{scenario.groups} groups, {scenario.rounds} rounds of {scenario.round_ms} ms "
        f"after {scenario.warmup} of warm-up",
        "",
        *_brokers(outcome.recording),
        "",
    ]
    asked = {verdict.figure: verdict for verdict in outcome.verdicts}
    for name, value in outcome.figures.as_json().items():
        verdict = asked.get(name)
        shown = "never" if value is None else f"{value:g}"
        said = "" if verdict is None else f"{verdict.asked:>10}  {_met(verdict.is_met)}"
        lines.append(f"{name:<16}{shown:>10}{said}".rstrip())
    lines += [f"broken: {violation}" for violation in outcome.violations]
    return "\n".join(lines)


def _described(scenario: Scenario) -> list[str]:
    network = f"delay up to {scenario.delay_ms:g} ms"
    if scenario.loss:
        network += f", loss {scenario.loss:g}"
    quota = f"{scenario.quota_per_daemon:g} messages/s"
    if scenario.bytes_per_daemon:
        quota += f" and {scenario.bytes_per_daemon:g} bytes/s"
    lines = [
        f"{scenario.name:<16}{scenario.title}",
        f"{'':<16}{scenario.daemons} daemons, {scenario.groups} groups, {scenario.rounds} rounds of "
        f"{scenario.round_ms} ms, quota {quota} a daemon, burst {scenario.burst_ms} ms, "
        f"callers {scenario.callers.value}, {network}",
    ]
    if scenario.targets:
        asked = ", ".join(f"{name} {bound}" for name, bound in scenario.targets.items())
        lines.append(f"{'':<16}asked of max-min: {asked}")
    return lines


def _brokers(recording: Recording) -> list[str]:
    begin = recording.warmup
    seconds = (recording.rounds - begin) * recording.round_s
    dimension = recording.limited[0]
    wanted, admitted = (
        counted[begin:, ..., dimension].sum(axis=(0, 1)) / seconds
        for counted in (recording.wanted, recording.admitted)
    )
    due = np.nansum(recording.due[begin:, ..., dimension], axis=(0, 1)) / seconds
    share = np.nansum(recording.shares[-1, ..., dimension], axis=0)
    lines = [f"{'broker':<16}{'wanted/s':>12}{'admitted/s':>12}{'max-min/s':>12}{'last share':>12}"]
    for place, name in enumerate(recording.brokers[:_BROKERS_MAX]):
        lines.append(
            f"{name:<16}{wanted[place]:>12.1f}{admitted[place]:>12.1f}"
            f"{due[place]:>12.1f}{share[place]:>12.1f}"
        )
    if len(recording.brokers) > _BROKERS_MAX:
        lines.append(f"and {len(recording.brokers) - _BROKERS_MAX} more")
    return lines


def _met(is_met: bool) -> str:  # noqa: FBT001 -- the only thing there is to say
    return "met" if is_met else "MISSED"
