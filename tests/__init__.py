"""The tests of rgd, one folder for each kind (docs/architecture.md lists them).

A package only so that `tests.support` is this one, whatever else is installed under that name.
The tests themselves are found by path and need no `__init__.py` beside them.
"""
