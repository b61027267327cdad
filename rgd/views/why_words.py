"""`/v1/explain` in words: what `rgd why` prints and the live page shows; the first line is the verdict.

Law: the words say only what the answer has, in its JSON form; this module only chooses the wording. The verdict
names the limit and the dimension that refused most in the last minute, and the table has every limit in the order
of decision, with the current state of its bucket.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rgd.core.units import Dimension
from rgd.text import count, show
from rgd.views.model import WordsView

_Json = Mapping[str, Any]

#: Of the table; so many from the left are words, the others numbers.
_COLUMNS: Final = (
    *("limit", "through", "of"),
    *("quota", "share here", "tokens", "depth", "wanted", "admitted", "refused lately"),
)
TEXT_COLUMNS: Final = 3

#: What a state of shares other than `live` means to a reader.
_STATES: Final = {
    "starting": "starting: shares are not known yet, it grants from the floor",
    "holding": "holding: the exchange was just lost, shares are as they were",
    "equal": "equal: the exchange is out of reach, each known broker takes an equal part",
    "hold": "hold: the exchange is out of reach, shares stay as they were",
    "open": "open: the exchange is out of reach, groups limit nothing here",
    "rejoining": "rejoining: the exchange is back, an equal part until the others have spoken",
}


def words_of(view: _Json) -> WordsView:
    """All that there is to say."""
    return WordsView(
        verdict(view),
        tuple(details(view)),
        _COLUMNS,
        tuple(tuple(row) for level in view["levels"] for row in _rows(level)),
        tuple(remarks(view)),
    )


def verdict(view: _Json) -> str:
    """The one line that answers."""
    name = f"{_name(view)} {view['kind']}"
    if not view["governed"]:
        return f"no limit applies to {name}: it is in no group and has none of its own"
    if view["limited_by"] is not None and view["limited_by"]["level"] == "backlog":
        return f"{name} is {_blocked_words(view)}"
    blocking = next((level for level in view["levels"] if _blocks(level)), None)
    if blocking is not None:
        return f"{name} is blocked by group {blocking['group']}: nothing passes"
    limit = view["limited_by"]
    if limit is None:
        limits = count(len(view["levels"]), "limit")
        over = [_title(one) for one in view["levels"] if one["soft"] and one["soft"]["is_over"]]
        beyond = f"; it is beyond the soft limit of {over[0]}" if over else ""
        return (
            f"{name} is not limited now: {limits}, none refused anything here in the last "
            f"{_window(view)}{beyond}"
        )
    level = next(
        level
        for level in view["levels"]
        if (level["level"], level["group"]) == (limit["level"], limit["group"])
    )
    figures = ", ".join(_rate_words(level, limit["dimension"]))
    return f"{name} is limited by {_title(level)} ({limit['dimension']}): {figures}"


def _blocks(level: _Json) -> bool:
    return bool(level["blocked"]) and not level["shadow"]


def details(view: _Json) -> Iterator[str]:
    """How much was refused, and when asking again helps."""
    for level in view["levels"]:
        lately = level["refused_last_minute"]
        for dimension in Dimension:
            refused = lately[f"by_{dimension}"]
            if refused["requests"]:
                retries = f" ({refused['retries']:,} of them retries)" if refused["retries"] else ""
                size = f", {show(refused['bytes'], is_bytes=True)}" if refused["bytes"] else ""
                yield (
                    f"{_title(level)} ({dimension}) refused {count(refused['requests'], 'request')}{retries}, "
                    f"{count(refused['messages'], 'message')}{size} on {view['broker']} in the last "
                    f"{lately['window_s']:.0f} s, of all names it governs"
                )
        yield from _leases(level)
    yield from _blocked_lately(view)
    yield from _throttled(view["throttled"])
    waits = [level["retry_after_ms"] for level in view["levels"]]
    is_held = (view["limited_by"] or {}).get("level") == "backlog"
    if any(waits) and not is_held and not any(map(_blocks, view["levels"])):
        yield f"one message more is granted in {max(waits):,} ms, if nobody takes it before"


def _leases(level: _Json) -> Iterator[str]:
    """What callers hold in advance of one limit."""
    leases = level["leases"]
    if leases is None:
        return
    wants = leases["wants"]
    amounts = [
        f"{show(wants[dimension], is_bytes=dimension is Dimension.BYTES)}/s ({dimension}, "
        f"{show(leases[f'held_{dimension}'], is_bytes=dimension is Dimension.BYTES)} held)"
        for dimension in Dimension
        if wants[dimension]
    ]
    wanted = f" that want {' and '.join(amounts)}" if amounts else ""
    yield f"{_title(level)} has {count(leases['leases'], 'lease')}{wanted}"


def _throttled(counts: _Json | None) -> Iterator[str]:
    """Which levels lowered the subscription's reads, each with its events."""
    if counts is None:
        return
    lowered = [
        f"{level['level']} {count(level[f'{dimension}_events'], 'time')} ({dimension})"
        for level in counts["levels"]
        for dimension in Dimension
        if level[f"{dimension}_events"]
    ]
    size = f" and {count(counts['bytes'], 'byte')}" if counts["bytes"] else ""
    yield (
        f"its reads were lowered by {', '.join(lowered)}: {count(counts['messages'], 'message')}"
        f"{size} not read in time, {counts['throttled_s']:,.1f} s of waiting"
    )


def remarks(view: _Json) -> Iterator[str]:
    """What else a reader should know."""
    if not view["governed"]:
        yield "it passes, unless http.ungoverned is deny; while no policies are known, policies.unknown decides"
    states = {level["state"] for level in view["levels"]} & _STATES.keys()
    for state in sorted(states):
        yield f"shares are {_STATES[state]}"
    for level in view["levels"]:
        if level["shadow"]:
            yield f"{_title(level)} is a shadow: it counts what it would refuse and refuses nothing"
        if level["soft"] is not None:
            yield _soft_words(level)
        if not level["in_use"]:
            yield f"{_title(level)} was not asked for here yet: it has no share and no bucket"
        elif level["topic_split"] not in {None, "shared"}:
            yield (
                f"{_title(level)} divides its share over topics ({level['topic_split']}): "
                f"tokens and depth are the topic's part"
            )
    for missing in view["missing_groups"]:
        scope = _scope(missing["set_at"])
        yield f"{scope} is attached to group {missing['group']}, which does not exist: it limits nothing"
    for quota in view["backlog_quotas"]:
        size, age = quota["size_bytes"], quota["age_s"]
        limit = show(size, is_bytes=True) if size is not None else ""
        limit = f"{age:,} s" if age is not None else limit or "unlimited"
        stored = "" if quota["enforced"] else "; without effect: nobody reports the backlog here"
        yield (
            f"backlog quota {quota['type']} {limit}, {quota['action']}, "
            f"set for {_scope(quota['set_at'])}{stored}"
        )
    yield from _backlog_words(view)


def _soft_words(level: _Json) -> str:
    """What a group's soft limit is here, and what was granted beyond it."""
    soft = level["soft"]
    rates = [
        f"{show(soft[dimension], is_bytes=dimension is Dimension.BYTES)}/s ({dimension})"
        for dimension in Dimension
        if soft[dimension] is not None
    ]
    here = f", {' and '.join(rates)} here" if rates else ""
    size = f" and {show(soft['over_bytes'], is_bytes=True)}" if soft["over_bytes"] else ""
    return (
        f"{_title(level)} has a soft limit at {soft['part']:g} of its share{here}: callers beyond it are "
        f"told and granted, {count(soft['over_messages'], 'message')}{size} since the start"
    )


def _blocked_lately(view: _Json) -> Iterator[str]:
    """What was refused of a topic whose backlog blocks publishing."""
    lately = view["backlog_refused_last_minute"]
    for dimension in Dimension if lately is not None else ():
        refused = lately[f"by_{dimension}"]
        if refused["requests"]:
            yield (
                f"the backlog quota refused {count(refused['requests'], 'request')}, "
                f"{count(refused['messages'], 'message')} on {view['broker']} in the last "
                f"{lately['window_s']:.0f} s"
            )


def _blocked_words(view: _Json) -> str:
    """Why publishing is blocked by the backlog, and until when at least."""
    backlog = view["backlog"]
    blocked = backlog["blocked"]
    is_size = blocked["quota_type"] == "size"
    limit = backlog["limit_size" if is_size else "limit_time"]
    if limit < (0 if is_size else 1):
        # The limit is the one in force, and the last check was under another.
        why = "its backlog exceeded a quota that was removed"
    elif is_size:
        size = show(backlog["size_bytes"], is_bytes=True)
        why = f"its backlog exceeds its quota, {size} of {show(limit, is_bytes=True)} (size)"
    else:
        why = (
            f"its backlog exceeds its quota, {backlog['oldest']['age_s']:,} s of {limit:,} s (time)"
        )
    what = "held" if blocked["held"] else "refused"
    return f"{what}: {why}; the next check is in {blocked['retry_after_ms'] / 1000:.0f} s"


def _backlog_words(view: _Json) -> Iterator[str]:
    """Where the oldest message is, and what a check says to skip."""
    backlog = view["backlog"]
    if backlog is None or backlog["oldest"] is None:
        return
    oldest = backlog["oldest"]
    age = "of unknown age" if oldest["age_s"] is None else f"{oldest['age_s']:,} s old"
    position = oldest["position"]
    yield (
        f"the oldest message is at {position['ledger']}:{position['entry']} in subscription "
        f"{oldest['subscription']}, {age} (its {oldest['age_of']}'s time), as of the last check"
    )
    for one in backlog["evictions"]:
        to = one["skip_to"]
        yield (
            f"subscription {one['subscription']} should skip to {to['ledger']}:{to['entry']} "
            f"(over its quota of {' and '.join(one['exceeded'])})"
        )


def _rate_words(level: _Json, dimension: str) -> Iterator[str]:
    figures, is_bytes = level[dimension], dimension == Dimension.BYTES
    reach = "each broker" if level["group"] is None else "cluster-wide"
    if figures["quota"] is not None:
        yield f"{show(figures['quota'], is_bytes=is_bytes)}/s {reach}"
    if level["group"] is not None and figures["share"] is not None:
        yield f"share here {show(figures['share'], is_bytes=is_bytes)}/s"
    if figures["part"] is not None:
        yield f"this topic's part {show(figures['part'], is_bytes=is_bytes)}/s"
    tokens = figures["tokens"]
    if tokens is not None and tokens < 0:
        yield f"in debt by {show(-tokens, is_bytes=is_bytes)}"
    elif tokens is not None:
        yield f"{show(tokens, is_bytes=is_bytes)} left now"
    if level["group"] is None:
        yield f"set for {_scope(level['set_at'][0])}"


def _rows(level: _Json) -> Iterator[list[str]]:
    """A row for each dimension that is limited; one where none is."""
    through = ",".join(f"{at['scope']}:{at['name']}" for at in level["set_at"])
    limited = [dimension for dimension in Dimension if level[dimension]["quota"] is not None]
    for dimension in limited or [Dimension.MESSAGES]:
        figures, is_bytes = level[dimension], dimension is Dimension.BYTES
        refused = level["refused_last_minute"][f"by_{dimension}"][dimension]
        share = figures["share"] if figures["part"] is None else figures["part"]
        yield [
            level["group"] or f"({level['level']})",
            through,
            dimension.value if limited else "anything",
            show(figures["quota"], is_bytes=is_bytes, empty="unlimited"),
            *(
                show(value, is_bytes=is_bytes)
                for value in (share, figures["tokens"], figures["depth"], figures["wanted"])
            ),
            show(figures["admitted"], is_bytes=is_bytes),
            show(refused, is_bytes=is_bytes),
        ]


def _title(level: _Json) -> str:
    if level["group"] is not None:
        return f"group {level['group']}"
    return f"the {level['level']}'s limit"


def _scope(at: _Json) -> str:
    return f"{at['scope']} {at['name']}"


def _name(view: _Json) -> str:
    name = view["namespace"] if view["topic"] is None else view["topic"]
    name = name.removeprefix("persistent://")
    return name if view["subscription"] is None else f"{name} subscription {view['subscription']}"


def _window(view: _Json) -> str:
    return f"{view['levels'][0]['refused_last_minute']['window_s']:.0f} s"
