"""Where `pulsar-admin` prints something else against rgd than against a stock Pulsar.

Law: what is not listed here does not differ, and what is listed does; test_as_stock.py sees to both. Why, and what each
prints, is in the table of docs/pulsar-admin.md; what exactly a command prints is said at the command, in script.py.
"""

from enum import Enum


class Difference(Enum):
    """The rows of the table in docs/pulsar-admin.md, in its order, by their first cells."""

    DYNAMIC_UNLIMITED = "`brokers get-all-dynamic-config` after a limit was set to 0 or less"
    DYNAMIC_NUMBER = "`brokers update-dynamic-config` of a limit with a value that is no integer"
    DELETE_MISSING = "`resourcegroups delete` of a missing group"
    IN_USE = "`resourcegroups delete` of a group in use"
    UNLIMITED = "get a rate that was set to 0 or less"
    TOO_GREAT = "get a rate that was set above 9,000,000,000,000,000 a second"
    NO_PERIOD = "get a dispatch rate that was set with a period of 0 (`-dt 0`)"
    TOO_SMALL = "set a dispatch rate below 0.001 a second (`-md 7 -dt 86400`)"
    LONG_PERIOD = "get a dispatch rate that was set over a period of more than 1000 seconds"
    UNNAMED_NAMESPACE = "get from a namespace without any policy"
    NAMED_NAMESPACE = "set, get or remove in a namespace that was not created"
    TOPIC = "set, get or remove for a topic that was not created"
    PARTITION = "set, get or remove for one partition (`orders-partition-0`)"
    GLOBAL = "`topicPolicies ... --global`"
    OTHER_BACKLOG = "get backlog quotas `--applied` of a topic that has a quota of one type only"
    NO_DEFAULT_BACKLOG = "get backlog quotas `--applied` of a topic where nothing is set"
