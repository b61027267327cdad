"""The client's clock: that of the process it lives in."""

import time

#: Monotonic nanoseconds.
now = time.monotonic_ns
