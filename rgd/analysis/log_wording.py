"""Sentences about the logs' defects: clocks that were off, brokers that stood still, lost counts.

Law: "nothing is missing" is stated only if every broker ended with a closing record or outlived the range, because a
killed broker loses the counts of its last round, and if no total of what was granted grew in a time without records of at most
3,600 windows. `summary.json` has the same facts.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from rgd.analysis.asked import ALWAYS
from rgd.analysis.clocks import ClockError
from rgd.analysis.figures import ahead, clock, moment, span
from rgd.analysis.log_facts import LogFacts
from rgd.text import count

#: Most brokers, silences and kills that one sentence names; `summary.json` lists more.
NAMED_MAX: Final = 5


def of_wrong_times(facts: LogFacts) -> list[str]:
    """Why figures mix different times and are not to be used; this comes before any other sentence."""
    clocks = facts.clocks
    off = "Warning: do not use these figures. Clocks of {} were off, and {}"
    if clocks.uncorrected:
        why = "the times of a lake are not corrected: make the report from the logs."
        return [off.format(names(clocks.uncorrected), why)]
    if clocks.errors and (facts.within != ALWAYS or facts.is_compared):
        wrong = sorted({one.broker for one in clocks.errors})
        why = "a time range is chosen by the brokers' own stamps, so that it has other times of them: leave it out."
        return [off.format(names(wrong), why)]
    return []


def of_clocks(facts: LogFacts) -> list[str]:
    """The clock errors, and the brokers whose clocks cannot be compared."""
    clocks = facts.clocks
    sentences = []
    by_broker = sorted(clocks.errors, key=lambda one: one.broker)
    wrong = [(broker, list(of)) for broker, of in groupby(by_broker, lambda one: one.broker)]
    if wrong:
        named = [_of_clock(broker, errors, facts) for broker, errors in wrong[:NAMED_MAX]]
        sentences.append(
            f"Clocks were off: {'; '.join(named)}{_and_more(len(wrong))}. The times of these logs were "
            "corrected by what the brokers had received of one another; the clock that most brokers "
            "share is taken for right."
            + (
                " Only two brokers can be compared, so either clock may be the wrong one."
                if len(facts.brokers) - len(clocks.unaligned) == 2
                else ""
            )
        )
    if clocks.unaligned:
        sentences.append(
            f"Warning: the times of {names(clocks.unaligned)} are as stamped and may be off: no records "
            "show that reports went both ways between them and the others, or they contradict each "
            "other. If so, the figures mix different times."
        )
    return sentences


def of_silences(facts: LogFacts) -> list[str]:
    """When brokers stood still."""
    if not facts.silences:
        return []
    longest = sorted(facts.silences, key=lambda one: one.from_ms - one.to_ms)[:NAMED_MAX]
    named = [
        f"{one.broker} from {clock(one.from_ms)} to {clock(one.to_ms)} UTC "
        f"({span(round((one.to_ms - one.from_ms) / 1000, 1))})"
        for one in longest
    ]
    return [
        f"Brokers were silent {count(len(facts.silences), 'time')}: they wrote no records and did not "
        "end their rounds, because they were stopped, killed or overloaded. "
        f"{'; '.join(named)}{_and_more(len(facts.silences))}. They are not judged in that time."
    ]


def of_gaps(facts: LogFacts, *, recovered: bool) -> list[str]:
    """Missing records, and permanent losses."""
    sentences = _of_missing(facts, recovered=recovered)
    ends = [*_of_ends(facts), *_of_unknown(facts)]
    if not sentences and not ends:
        return ["Nothing is missing: every record could be read, and none was lost on the way."]
    if not sentences:
        sentences = [
            "Every record could be read, and none is missing between the first and the last."
        ]
    return [" ".join(sentences), *ends]


def _of_clock(broker: str, errors: Sequence[ClockError], facts: LogFacts) -> str:
    worst = max(errors, key=lambda one: abs(one.ahead_ms))
    sentence = f"{broker}'s was {ahead(worst.ahead_ms)}"
    slack_ms = 2 * facts.round_ms
    if worst.from_ms > facts.from_ms + slack_ms or worst.to_ms < facts.to_ms - slack_ms:
        sentence += f" from {clock(worst.from_ms)} to {clock(worst.to_ms)} UTC"
    return (
        sentence
        if len(errors) == 1
        else f"{sentence} (and otherwise off {len(errors) - 1} more times)"
    )


def _of_missing(facts: LogFacts, *, recovered: bool) -> list[str]:
    sentences = []
    if facts.missing:
        saved = (
            "; what was counted in them is known from the totals of the next ones and was spread "
            "evenly over the gaps"
            if recovered
            else ""
        )
        verb = "is" if facts.missing == 1 else "are"
        sentences.append(f"{count(facts.missing, 'record')} {verb} missing{saved}.")
    elif recovered:
        # As of rounds before a plane died: `continuity` looks at the totals within a segment only.
        sentences.append(
            "Records may be missing: totals grew in times without any, and that growth was spread evenly over them."
        )
    if facts.damaged:
        file, offset, reason = facts.damages[0]
        sentences.append(
            f"{count(facts.damaged, 'stretch', 'stretches')} of the log could not be read "
            f"({facts.damaged_bytes:,} bytes; the first in {file} at offset {offset:,}: {reason})."
        )
    if facts.torn_bytes:
        sentences.append(
            f"{facts.torn_bytes:,} bytes at the end of segments were not written whole (yet)."
        )
    return sentences


def _of_ends(facts: LogFacts) -> list[str]:
    """The possible losses of brokers without an orderly stop."""
    sentences = []
    length = span(round(facts.round_ms / 1000, 3))
    if facts.killed:
        named = [f"{end.broker} at {moment(end.at_ms)} UTC" for end in facts.killed[:NAMED_MAX]]
        sentences.append(
            f"Brokers ended without a closing record {count(len(facts.killed), 'time')}, as when they are "
            f"killed: {', '.join(named)}{_and_more(len(facts.killed))}. What was counted last, up to "
            f"{length} each time, is missing here and cannot be recovered."
        )
    if facts.open:
        verb = "has" if len(facts.open) == 1 else "have"
        sentences.append(
            f"{names(facts.open)} {verb} no closing record at the end of the log: still running when "
            f"it was read, or killed. Up to {length} of what each counted last is not in it."
        )
    return sentences


def names(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    return ", ".join(names[:NAMED_MAX]) + _and_more(len(names))


def _and_more(number: int) -> str:
    return f" and {number - NAMED_MAX} more" if number > NAMED_MAX else ""


def _of_unknown(facts: LogFacts) -> list[str]:
    """Requests decided while a broker knew no policies; they are in no group's figures."""
    counted = ((facts.unknown_granted, "granted"), (facts.unknown_refused, "refused"))
    return [
        f"{count(number, 'request')} {'was' if number == 1 else 'were'} {done} while no policies were "
        "known, and no group's figures have them."
        for number, done in counted
        if number
    ]
