"""`python -m sim`: see `sim.cli`."""

from sim.cli import main
from sim.exiting import exit_with

if __name__ == "__main__":
    exit_with(main)
