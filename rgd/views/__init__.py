"""Views of a broker's state for HTTP, metrics and explain, computed in slices of bounded work.

Law: reading changes nothing, and no call here does more than one slice. The size of a slice is
counted in rows, names or series, never in time, so it is the same in the daemon and in a test.
"""
