"""Where `pulsar-admin` prints something else against rgd than against a stock Pulsar, and why.

Law: what is not listed here does not differ, and what is listed does; test_as_stock.py sees to both,
and that docs/pulsar-admin.md has this table. Which commands differ, and what exactly each prints, is
said at the command, in script.py.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Difference:
    """One row of the table in docs/pulsar-admin.md."""

    what: str
    stock: str
    rgd: str
    why: str


DELETE_MISSING = Difference(
    what="`resourcegroups delete` of a missing group",
    stock="500, with a stack trace",
    rgd="404, `ResourceGroup does not exist`",
    why="what Pulsar's documentation says",
)
IN_USE = Difference(
    what="`resourcegroups delete` of a group in use",
    stock="412, `ResourceGroup is in use`",
    rgd="409, the same text and its users",
    why="409 is what Pulsar's documentation says; the users show what to do next",
)
UNLIMITED = Difference(
    what="get a rate that was set to 0 or less",
    stock="as it was set (`-7`, `0`)",
    rgd="`-1`",
    why="both are no limit; rgd has one spelling for it",
)
TOO_GREAT = Difference(
    what="get a rate that was set above 9,000,000,000,000,000 a second",
    stock="as it was set",
    rgd="`-1`",
    why="no limit: above the range of shares, and of any real traffic",
)
NO_PERIOD = Difference(
    what="get a dispatch rate that was set with a period of 0 (`-dt 0`)",
    stock="period `0`",
    rgd="period `1`",
    why="a rate needs a period; one second is the default of Pulsar's client",
)
TOO_SMALL = Difference(
    what="set a dispatch rate below 0.001 a second (`-md 7 -dt 86400`)",
    stock="done",
    rgd="400",
    why="rgd computes in thousandths a second, and would have to grant more than the rate",
)
LONG_PERIOD = Difference(
    what="get a dispatch rate that was set over a period of more than 1000 seconds",
    stock="as it was set",
    rgd="rounded down to a whole number of thousandths a second",
    why="the same; the rate in force is shown",
)
UNNAMED_NAMESPACE = Difference(
    what="get from a namespace without any policy",
    stock="nothing is set, if the namespace was created",
    rgd="404, `Namespace does not exist`",
    why="rgd has no `namespaces create`: a namespace exists once a policy has named it",
)
NAMED_NAMESPACE = Difference(
    what="set, get or remove in a namespace that was not created",
    stock="404, `Namespace does not exist`",
    rgd="done; the namespace exists from then on",
    why="the same: naming it creates it",
)
TOPIC = Difference(
    what="set, get or remove for a topic that was not created",
    stock="404, `Topic ... not found`",
    rgd="done",
    why="rgd sees no topics: its callers name them, so a limit may exist first",
)
PARTITION = Difference(
    what="set, get or remove for one partition (`orders-partition-0`)",
    stock="412, `Not allowed to set/get topic policy for a partition`",
    rgd="done",
    why="a partition may have a limit of its own here; without one, its topic's applies",
)
GLOBAL = Difference(
    what="`topicPolicies ... --global`",
    stock="stored separately from the topic's own",
    rgd="is the topic's own",
    why="rgd has one cluster, so local and global are the same",
)
OTHER_BACKLOG = Difference(
    what="get backlog quotas `--applied` of a topic that has a quota of one type only",
    stock="that quota",
    rgd="that quota, and its namespace's of the other type",
    why="both are in force: Pulsar shows one scope's, but enforces each type separately",
)
NO_DEFAULT_BACKLOG = Difference(
    what="get backlog quotas `--applied` of a topic where nothing is set",
    stock="its configuration's default (10 GiB in standalone.conf)",
    rgd="its own default, unlimited unless `backlog.backlogQuotaDefaultLimit...` says otherwise",
    why="the defaults of Pulsar's code, not of standalone.conf",
)

DYNAMIC_UNLIMITED = Difference(
    what="`brokers get-all-dynamic-config` after a limit was set to 0 or less",
    stock="as it was set (`-5`)",
    rgd="nothing",
    why="no limit; rgd has one spelling for it",
)
DYNAMIC_NUMBER = Difference(
    what="`brokers update-dynamic-config` of a limit with a value that is no integer",
    stock="done, and shown; the limit in force stays",
    rgd="400",
    why="a typing error would go unnoticed",
)

DIFFERENCES = (
    DYNAMIC_UNLIMITED,
    DYNAMIC_NUMBER,
    DELETE_MISSING,
    IN_USE,
    UNLIMITED,
    TOO_GREAT,
    NO_PERIOD,
    TOO_SMALL,
    LONG_PERIOD,
    UNNAMED_NAMESPACE,
    NAMED_NAMESPACE,
    TOPIC,
    PARTITION,
    GLOBAL,
    OTHER_BACKLOG,
    NO_DEFAULT_BACKLOG,
)


def table() -> str:
    """The table as docs/pulsar-admin.md has it."""
    rows = [(row.what, row.stock, row.rgd, row.why) for row in DIFFERENCES]
    head = [("command", "Pulsar 4.0.8", "rgd", "why"), ("---",) * 4]
    return "".join(f"| {' | '.join(row)} |\n" for row in [*head, *rows])
