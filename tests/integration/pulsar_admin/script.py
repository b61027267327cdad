"""The commands of pulsar-admin that are tried, in order, and those whose answers Difference.

Law: each command stands in a place where it prints the same on every run: what it shows was set
before by the script, and the script takes away everything that it makes. A command that is given as a
`Step` with a difference prints `stock` and `rgd`; every other one prints the same on both.
The namespace `NAMESPACE` and the topic `TOPIC` are made before on the stock Pulsar.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.integration.pulsar_admin.differences import Difference
from tests.integration.pulsar_admin.printed import backlog, dispatch, group, publish, refused

TENANT = "rgd-compared"
NAMESPACE = f"{TENANT}/orders"
NEVER = f"{TENANT}/never"
TOPIC = f"persistent://{NAMESPACE}/eu"
UNMADE = f"persistent://{NAMESPACE}/unmade"
PARTITION = f"{TOPIC}-partition-0"

#: Groups on a shared Pulsar begin like that, so that those of other tests are not looked at.
GROUPS = "rgd-compared-"
GOLD, SILVER, BRONZE, HUGE = (GROUPS + name for name in ("gold", "silver", "bronze", "huge"))

NO_NAMESPACE = "Namespace does not exist"
NO_PARTITION = "Not allowed to set/get topic policy for a partition"
NO_TOPIC = f"Topic {UNMADE} not found"
#: A stock Pulsar's words for a group that is not there.
NO_PATH = (
    "--- An unexpected error occurred in the server ---\n"
    f"Message: path /admin/resourcegroups/{BRONZE} not found."
)
TOO_SMALL = (
    "dispatchThrottlingRateInMsg: expected at least 1 in 1000 seconds (ratePeriodInSecond), "
    "got 7 in 86400"
)
IN_USE = "ResourceGroup is in use"
USED_BY = "group {!r} is in use by namespace {!r}; detach it first"
#: Of the stock Pulsar's settings those that rgd has begin like that.
BROKER_LIMITS = "dispatchThrottlingRateIn"
#: The types of backlog quotas.
SIZE, AGE = "destination_storage", "message_age"
INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1


@dataclass(frozen=True, slots=True)
class Step:
    """A command, without `admin` before it; with a difference, what each server has it print."""

    command: str
    difference: Difference | None = None
    stock: str = ""
    rgd: str = ""


def script() -> list[Step]:
    """All steps, in order."""
    return [
        *resource_groups(),
        *attached(),
        *namespace_rates(),
        *topic_rates("topicPolicies"),
        *topic_rates("topics"),
        *subscription_rates(),
        *backlog_quotas("namespaces", NAMESPACE, "get-backlog-quotas"),
        *backlog_quotas("topicPolicies", TOPIC, "get-backlog-quota"),
        *backlog_quotas("topics", TOPIC, "get-backlog-quotas"),
        *applied(),
        *global_policies(),
        *what_does_not_exist(),
        *dynamic_config(),
    ]


def dynamic_config() -> Iterator[Step]:
    """The broker's dispatch limit."""
    messages, size = (f"dispatchThrottlingRateIn{unit}" for unit in ("Msg", "Byte"))
    get, update = "brokers get-all-dynamic-config", "brokers update-dynamic-config"
    for command in (
        "brokers list-dynamic-config",
        get,
        f"{update} --config {messages} --value 100",
        get,
        f"{update} -c {messages} -v 200",
        get,
        f"brokers delete-dynamic-config --config {messages}",
        get,
        f"{update} --config {size} --value 3000000000",
        get,
        f"{update} --config noSuchSetting --value 1",
        "brokers delete-dynamic-config -c noSuchSetting",
    ):
        yield Step(command)
    malformed = f"{size}: expected an integer from {-INT64_MAX - 1} to {INT64_MAX}, got 'many'"
    yield Step(
        f"{update} -c {size} -v many", Difference.DYNAMIC_NUMBER, "", refused(malformed, 400)
    )
    yield Step(f"{update} -c {size} -v -5")
    yield Step(get, Difference.DYNAMIC_UNLIMITED, f"{size}    -5", "")
    yield Step(f"{update} -c {size} -v 0")
    for name in (messages, size):
        yield Step(f"brokers delete-dynamic-config -c {name}")
    yield Step(get)


def resource_groups() -> Iterator[Step]:
    """Create, get, update, list, delete, with each flag in both spellings."""
    get_gold = f"resourcegroups get {GOLD}"
    for command in (
        "list",
        f"get {GOLD}",
        f"create {GOLD} -mp 100 -bp 1000 -md 200 -bd 2000",
        f"get {GOLD}",
        f"create {SILVER}",
        f"get {SILVER}",
        f"create {SILVER} --msg-publish-rate 5 --byte-publish-rate 50",
        f"get {SILVER}",
        f"update {SILVER} --msg-dispatch-rate 7 --byte-dispatch-rate 70",
        f"get {SILVER}",
        f"update {BRONZE} -mp 1",
        f"get {BRONZE}",
        f"update {BRONZE} -mp -1",
        f"get {BRONZE}",
        "list",
        f"create {GOLD} -mp many",
        f"update {GOLD} -mp -7 -bp 0",
    ):
        yield Step(f"resourcegroups {command}")
    yield Step(get_gold, Difference.UNLIMITED, group(-7, 0, 200, 2000), group(-1, -1, 200, 2000))
    yield Step(f"resourcegroups create {HUGE} -mp {INT32_MAX} -bp {INT64_MAX}")
    yield Step(
        f"resourcegroups get {HUGE}",
        Difference.TOO_GREAT,
        group(INT32_MAX, INT64_MAX, -1, -1),
        group(INT32_MAX, -1, -1, -1),
    )
    for name in (HUGE, BRONZE):
        yield Step(f"resourcegroups delete {name}")
    yield Step(f"resourcegroups get {BRONZE}")
    yield Step(
        f"resourcegroups delete {BRONZE}",
        Difference.DELETE_MISSING,
        refused(NO_PATH, 500).replace("Reason: ", "Reason:\n"),
        refused("ResourceGroup does not exist", 404),
    )


def attached() -> Iterator[Step]:
    """The namespace's resource group."""
    get, delete = f"namespaces get-resource-group {NAMESPACE}", "resourcegroups delete"
    in_use = f"{IN_USE}: {USED_BY.format(GOLD, NAMESPACE)}"
    yield Step(get, Difference.UNNAMED_NAMESPACE, "", refused(NO_NAMESPACE))
    yield Step(f"namespaces set-resource-group {NAMESPACE} -rgn {GOLD}")
    yield Step(get)
    yield Step(f"{delete} {GOLD}", Difference.IN_USE, refused(IN_USE, 412), refused(in_use, 409))
    for command in (
        f"namespaces set-resource-group {NAMESPACE} --resource-group-name {SILVER}",
        get,
        f"namespaces set-resource-group {NAMESPACE} -rgn nobody",
        get,
        f"{delete} {GOLD}",
        f"namespaces remove-resource-group {NAMESPACE}",
        get,
        f"namespaces remove-resource-group {NAMESPACE}",
        f"{delete} {SILVER}",
        "resourcegroups list",
        "namespaces get-resource-group no-namespace",
    ):
        yield Step(command)


def namespace_rates() -> Iterator[Step]:
    """Dispatch, subscription-dispatch and publish rates of a namespace."""
    yield from rates("namespaces", NAMESPACE)
    get = f"namespaces get-dispatch-rate {NAMESPACE}"
    yield Step(f"namespaces set-dispatch-rate {NAMESPACE} -md 7 -dt 3")
    yield Step(get)
    set_small = f"namespaces set-dispatch-rate {NAMESPACE} -md 7 -dt 86400"
    yield Step(set_small, Difference.TOO_SMALL, "", refused(TOO_SMALL, 400))
    yield Step(f"namespaces set-dispatch-rate {NAMESPACE} -md 7 -dt 6000")
    yield Step(get, Difference.LONG_PERIOD, dispatch(7, -1, 6000), dispatch(6, -1, 6000))
    yield Step(f"namespaces set-dispatch-rate {NAMESPACE} -md -5 -bd 0")
    yield Step(get, Difference.UNLIMITED, dispatch(-5, 0), dispatch(-1, -1))
    yield Step(f"namespaces set-dispatch-rate {NAMESPACE} -md 5 -dt 0")
    yield Step(get, Difference.NO_PERIOD, dispatch(5, -1, 0), dispatch(5, -1, 1))
    yield Step(f"namespaces remove-dispatch-rate {NAMESPACE}")
    get = f"namespaces get-publish-rate {NAMESPACE}"
    yield Step(f"namespaces set-publish-rate {NAMESPACE} -m 0 -b -5")
    yield Step(get, Difference.UNLIMITED, publish(0, -5), publish(-1, -1))
    yield Step(f"namespaces remove-publish-rate {NAMESPACE}")


def topic_rates(scope: str) -> Iterator[Step]:
    """The same of a topic; `topics` is the older spelling of `topicPolicies`."""
    yield from rates(scope, TOPIC)
    yield Step(
        f"{scope} get-dispatch-rate {PARTITION}",
        Difference.PARTITION,
        refused(NO_PARTITION),
        "null",
    )
    for kind in ("dispatch-rate", "subscription-dispatch-rate"):
        yield Step(f"{scope} get-{kind} {TOPIC} --applied")


def rates(scope: str, name: str) -> Iterator[Step]:
    """Set, get, replace and remove the three rates at one place, with each flag in both spellings."""
    for kind in ("dispatch-rate", "subscription-dispatch-rate"):
        for command in (
            f"get-{kind} {name}",
            f"set-{kind} {name} -md 10 -bd 1000 -dt 2 -rp",
            f"get-{kind} {name}",
            f"set-{kind} {name} --msg-dispatch-rate 20 --dispatch-rate-period 4",
            f"get-{kind} {name}",
            f"set-{kind} {name} --byte-dispatch-rate 3000 --relative-to-publish-rate",
            f"get-{kind} {name}",
            f"set-{kind} {name}",
            f"get-{kind} {name}",
            f"remove-{kind} {name}",
            f"get-{kind} {name}",
            f"remove-{kind} {name}",
        ):
            yield Step(f"{scope} {command}")
    for command in (
        f"get-publish-rate {name}",
        f"set-publish-rate {name} -m 7 -b 700",
        f"get-publish-rate {name}",
        f"set-publish-rate {name} --msg-publish-rate 8",
        f"get-publish-rate {name}",
        f"set-publish-rate {name} --byte-publish-rate 800",
        f"get-publish-rate {name}",
        f"set-publish-rate {name} -m many",
        f"remove-publish-rate {name}",
        f"get-publish-rate {name}",
        f"remove-publish-rate {name}",
    ):
        yield Step(f"{scope} {command}")


def subscription_rates() -> Iterator[Step]:
    """One subscription's dispatch rate, beside those of all its topic's."""
    kind = "subscription-dispatch-rate"
    for command in (
        f"set-{kind} {TOPIC} -s audit -md 30 -bd 3000",
        f"get-{kind} {TOPIC} -s audit",
        f"get-{kind} {TOPIC} --subscription other",
        f"get-{kind} {TOPIC}",
        f"set-{kind} {TOPIC} -md 40",
        f"get-{kind} {TOPIC} -s audit -ap",
        f"get-{kind} {TOPIC} -s other -ap",
        f"remove-{kind} {TOPIC} -s audit",
        f"get-{kind} {TOPIC} -s audit",
        f"get-{kind} {TOPIC} -s audit -ap",
        f"remove-{kind} {TOPIC}",
        f"get-{kind} {TOPIC} -s audit --applied",
    ):
        yield Step(f"topicPolicies {command}")


def backlog_quotas(scope: str, name: str, get: str) -> Iterator[Step]:
    """Both types, all three policies, sizes and times as people write them."""
    for command in (
        f"{get} {name}",
        f"set-backlog-quota {name} -l 10M -p producer_request_hold",
        f"{get} {name}",
        f"set-backlog-quota {name} --limit 1G --policy producer_exception --type destination_storage",
        f"{get} {name}",
        f"set-backlog-quota {name} -lt 3h -p consumer_backlog_eviction -t message_age",
        f"{get} {name}",
        f"set-backlog-quota {name} -l 5M --limitTime 60 -p producer_exception -t message_age",
        f"{get} {name}",
        f"set-backlog-quota {name} -l 1T -lt 1w -p consumer_backlog_eviction",
        f"{get} {name}",
        f"set-backlog-quota {name} -l -7 -lt -7 -p producer_request_hold",
        f"{get} {name}",
        f"set-backlog-quota {name} -l 0 -lt 0 -p producer_exception",
        f"{get} {name}",
        f"set-backlog-quota {name} -l 5M -p no_such_policy",
        f"set-backlog-quota {name} -l 5M -p producer_exception -t no_such_type",
        f"remove-backlog-quota {name}",
        f"{get} {name}",
        f"remove-backlog-quota {name} -t message_age",
        f"{get} {name}",
        f"remove-backlog-quota {name} --type message_age",
    ):
        yield Step(f"{scope} {command}")


def applied() -> Iterator[Step]:
    """What holds for a topic: its own, else its namespace's."""
    get_backlogs = f"topicPolicies get-backlog-quota {TOPIC} --applied"
    by_default = "\n".join(
        backlog(kind, 10 * 2**30, -1, "producer_request_hold") for kind in (SIZE, AGE)
    )
    unlimited = "\n".join(backlog(kind, -1, -1, "producer_request_hold") for kind in (SIZE, AGE))
    for command in (get_backlogs, f"topics get-backlog-quotas {TOPIC} -ap"):
        yield Step(command, Difference.NO_DEFAULT_BACKLOG, by_default, unlimited)
    for command in (
        f"namespaces set-dispatch-rate {NAMESPACE} -md 50 -dt 10",
        f"namespaces set-subscription-dispatch-rate {NAMESPACE} -md 60",
        f"namespaces set-publish-rate {NAMESPACE} -m 70",
        f"namespaces set-backlog-quota {NAMESPACE} -l 1G -p producer_exception",
        f"namespaces set-backlog-quota {NAMESPACE} -lt 60 -p producer_exception -t {AGE}",
        f"topicPolicies get-dispatch-rate {TOPIC}",
        f"topicPolicies get-dispatch-rate {TOPIC} -ap",
        f"topicPolicies get-subscription-dispatch-rate {TOPIC} -ap",
        f"topicPolicies get-subscription-dispatch-rate {TOPIC} -s audit -ap",
        f"topicPolicies get-publish-rate {TOPIC}",
        f"topicPolicies get-backlog-quota {TOPIC}",
        get_backlogs,
        f"topicPolicies set-dispatch-rate {TOPIC}",
        f"topicPolicies get-dispatch-rate {TOPIC} -ap",
        f"topics get-dispatch-rate {TOPIC} -ap",
        f"topicPolicies set-backlog-quota {TOPIC} -l 2G -p consumer_backlog_eviction",
    ):
        yield Step(command)
    own = backlog(SIZE, 2 * 2**30, -1, "consumer_backlog_eviction")
    other = backlog(AGE, -1, 60, "producer_exception")
    yield Step(get_backlogs, Difference.OTHER_BACKLOG, own, f"{own}\n{other}")
    for command in (
        f"topicPolicies remove-dispatch-rate {TOPIC}",
        f"topicPolicies remove-backlog-quota {TOPIC}",
        f"namespaces remove-dispatch-rate {NAMESPACE}",
        f"namespaces remove-subscription-dispatch-rate {NAMESPACE}",
        f"namespaces remove-publish-rate {NAMESPACE}",
        f"namespaces remove-backlog-quota {NAMESPACE}",
        f"namespaces remove-backlog-quota {NAMESPACE} -t {AGE}",
    ):
        yield Step(command)


def global_policies() -> Iterator[Step]:
    """What `--global` sets."""
    quota = backlog(SIZE, 5, -1, "producer_exception")
    for kind, flags, get, nothing, seen in (
        ("dispatch-rate", "-md 5", "get-dispatch-rate", "null", dispatch(5, -1)),
        (
            "subscription-dispatch-rate",
            "-md 5",
            "get-subscription-dispatch-rate",
            "null",
            dispatch(5, -1),
        ),
        ("publish-rate", "-m 5", "get-publish-rate", "null", publish(5, -1)),
        ("backlog-quota", "-l 5 -p producer_exception", "get-backlog-quota", "", quota),
    ):
        yield Step(f"topicPolicies set-{kind} {TOPIC} {flags} --global")
        yield Step(f"topicPolicies {get} {TOPIC} -g")
        yield Step(f"topicPolicies {get} {TOPIC}", Difference.GLOBAL, nothing, seen)
        yield Step(f"topicPolicies remove-{kind} {TOPIC} -g")
        yield Step(f"topicPolicies {get} {TOPIC} -g")


def what_does_not_exist() -> Iterator[Step]:
    """Namespaces and topics that nobody made."""
    for command in (
        f"get-resource-group {NEVER}",
        f"get-dispatch-rate {NEVER}",
        f"get-subscription-dispatch-rate {NEVER}",
        f"get-publish-rate {NEVER}",
        f"get-backlog-quotas {NEVER}",
        f"set-resource-group {NEVER} -rgn nobody",
    ):
        yield Step(f"namespaces {command}")
    yield Step(f"topicPolicies get-publish-rate persistent://{NEVER}/eu")
    for difference, topic, reason, status in (
        (Difference.TOPIC, UNMADE, NO_TOPIC, 404),
        (Difference.PARTITION, PARTITION, NO_PARTITION, 412),
    ):
        missing, missed = refused(reason), refused(reason, status)
        for verb, flags, stock, rgd in (
            ("set", " -m 5", missed, ""),
            ("get", "", missing, publish(5, -1)),
            ("remove", "", missed, ""),
        ):
            command = f"topicPolicies {verb}-publish-rate {topic}{flags}"
            yield Step(command, difference, stock, rgd)
    missing, missed = refused(NO_NAMESPACE), refused(NO_NAMESPACE, 404)
    for verb, flags, stock, rgd in (
        ("set", " -m 1", missed, ""),
        ("get", "", missing, publish(1, -1)),
        ("remove", "", missed, ""),
    ):
        command = f"namespaces {verb}-publish-rate {NEVER}{flags}"
        yield Step(command, Difference.NAMED_NAMESPACE, stock, rgd)
