"""`rgd demo` deletes nothing but a former demo. Not covered: the demo itself (tests/e2e/test_demo.py)."""

from pathlib import Path

from tests.unit.cli.conftest import Rgd


def test_a_folder_that_is_no_demos_stays_as_it_is(rgd: Rgd, tmp_path: Path) -> None:
    policies = tmp_path / "groups.yaml"
    policies.write_text("groups: {}\n")
    (tmp_path / "log").mkdir()
    outcome = rgd("demo", "--no-report", "--out", str(tmp_path))
    assert (outcome.code, outcome.out) == (2, "")
    assert "expected a new or empty folder" in outcome.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["groups.yaml", "log"]
