"""What HTTP, metrics and explain read of a broker: batched, in slices of bounded work.

Law: reading changes nothing, and no call here works through more than one slice. A slice is counted in
what it looks at (rows, names, series), never in time, so it is the same in the daemon and in a test.
"""
