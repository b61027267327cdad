"""The last known content of the policies table, on disk."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rgd.adapters.policies.kept import PoliciesFile
    from rgd.ports.policies import PoliciesKept

    # The type checker holds the adapter against its port here.
    KEPT: type[PoliciesKept] = PoliciesFile
