"""The last known content of the policies table, on disk."""
