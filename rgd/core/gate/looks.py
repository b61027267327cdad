"""What views and metrics read of the gate, taken where the buckets are.

Laws: a look changes nothing that decides. It takes the gate and plain data, and gives plain data, so it can be asked
from another process (`Gate.ask`). Its work is bounded: some hundreds of names or groups.
"""
