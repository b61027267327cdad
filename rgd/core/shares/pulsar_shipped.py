"""What Apache Pulsar 4.0.8 ships: quota * own / sum, over what was admitted.

The rule is `ResourceQuotaCalculatorImpl.computeLocalQuota`, in float32 as there:
truncated to whole units, never below 1, the whole quota where nobody reports.
Usage is what was *admitted*, so a broker that is at its limit can never ask for
more: every allocation of a saturated quota is a fixed point.
"""

import numpy as np

from rgd.core.shares.columns_sums import Ints


def local_quotas(quota: Ints, own: Ints, total: Ints) -> Ints:
    """Pulsar's formula, digit for digit; arrays of one shape.

    Args:
        quota: of the whole cluster, units per second; negative is "not configured".
        own: a broker's usage in a period, as its last report said.
        total: the sum over all brokers ever heard of.

    Returns:
        Units per second; -1 for unlimited.
    """
    residual = (quota - total).astype(np.float32)
    used = own.astype(np.float32)
    fraction = used / np.maximum(total, 1).astype(np.float32)
    granted = np.maximum(used + residual * fraction, np.float32(1)).astype(np.int64)
    return np.where(quota < 0, -1, np.where(total == 0, quota, granted))
