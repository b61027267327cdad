"""The tier of the usage log: a folder or an S3-compatible bucket, and what lies where in it.

Law: nothing that is there is ever overwritten, but the torn beginning of the same bytes that a crash left; an
object is created whole or not at all.

`objects` is the only home of obstore, `identity` says which tier a place holds, `tier` knows names and the
order of steps, `manifest` says what a segment holds. `ranges` fetches a segment piecewise, wherever it
lies, `headers` walks its entries, and `marks` is its sparse index. Low enough that adapters, analysis and the command line may all import it; when
something is uploaded or deleted is decided in `rgd.adapters.usagelog`.
"""
