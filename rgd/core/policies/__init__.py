"""Policies: groups, their attachments, and further limits.

`names` parses tenants, namespaces and topics; `model` has the values;
`snapshot` is the immutable snapshot against which the fast path resolves names;
`records` merges the records of several writers: the highest revision wins.
"""
