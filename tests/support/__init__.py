"""What several kinds of tests share: components to find, worlds to build.

Fixtures that tests ask for by name are in tests/conftest.py or in the conftest.py of their folder;
plain functions and classes live here and are imported as `tests.support.<module>`.
"""
