"""`python -m rgd`: the same as the `rgd` command.

Only the hand-over lives here. Guarded, because processes that are spawned (the demo's load,
Spark's workers) import the main module again and must not start a second command.
The commands themselves are in rgd.cli.
"""

from rgd.cli.main import run

if __name__ == "__main__":
    run()
