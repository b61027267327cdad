"""What the Dockerfile says of its images, without building them (tests/e2e/test_image.py does)."""

import re

import pytest

from rgd.version import __version__
from tests.support.dockerfile import DAEMON, Stage, stages
from tests.tidy import tree

IMAGES = (DAEMON, "report")


def labels(stage: Stage) -> dict[str, str]:
    """The labels of a stage, of those below it too; arguments have their defaults."""
    found = labels(stages()[stage.base]) if stage.base in stages() else {}
    arguments = dict(text.split("=") for name, text in stage.steps if name == "ARG")
    for name, text in stage.steps:
        if name == "LABEL":
            for key, value in re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]*)"', text):
                found[key] = arguments.get(value.removeprefix("$"), value)
    return found


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_says_what_it_is_and_runs_as_nobody_important(name: str) -> None:
    stage = stages()[name]
    said = labels(stage)
    assert said.keys() == {"title", "description", "version", "revision"}
    assert said["version"] == __version__
    assert stage.last("USER") == "10001:10001"


def test_what_is_built_without_a_target_is_the_daemon_which_says_whether_it_is_well() -> None:
    *_, last = stages()
    assert last == DAEMON
    assert stages()[DAEMON].last("HEALTHCHECK").endswith('CMD ["rgd", "probe"]')
    assert stages()[DAEMON].last("STOPSIGNAL") == "SIGTERM"


def test_all_stages_have_one_base_and_what_they_copy_goes_to_the_build() -> None:
    bases = {stage.base for stage in stages().values()} - set(stages())
    assert len(bases) == 1
    sent = {line[1:] for line in tree.text(".dockerignore").splitlines() if line.startswith("!")}
    copied = {
        word
        for stage in stages().values()
        for name, text in stage.steps
        if name == "COPY" and not text.startswith("--from")
        for word in text.split()[:-1]
    }
    assert copied == sent
