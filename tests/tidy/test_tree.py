"""What no committed file may say: where one machine keeps things, and which registry it uses.

Not covered: secrets (there is nothing in the tree to tell one by), and what git's history holds.
"""

from tests.tidy import tree

# Written so that this file does not find itself.
MACHINE_PATHS = r"(?<![\w.])/(?:work|farm|root|home/\w+|Users/\w+|opt/venv)/"
TEMPORARY_PATHS = r"""["']/(?:tmp|var/tmp)\b"""
REGISTRIES = (
    r"\b(?:pypi|pythonhosted)\.(?:org|io)|\brepo\d*\.maven\b|\bmaven\.apache\.org/maven2"
    r"|\bregistry\.npmjs|\bproxy\.golang|\b(?:docker|ghcr|quay)\.io\b|--(?:extra-)?index-url\b"
)


def test_no_file_names_a_folder_of_one_machine() -> None:
    assert tree.matches(MACHINE_PATHS, tree.text_files()) == []


def test_no_code_writes_to_a_fixed_temporary_folder() -> None:
    assert tree.matches(TEMPORARY_PATHS, tree.modules("rgd", "sim", "tests", "bench")) == []


def test_no_file_names_a_package_registry() -> None:
    assert tree.matches(REGISTRIES, tree.text_files()) == []
