"""Policies: groups, what they are attached to, and the limits beside them.

`names` parses tenants, namespaces and topics; `model` holds the values;
`book` is the immutable snapshot that the short road resolves names against;
`records` merges what several writers say, the highest revision winning.
"""
