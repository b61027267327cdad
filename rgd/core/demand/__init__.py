"""Demand: what a group's callers were granted and what they wanted.

`meter` counts while requests pass and is drained once a round.
"""
