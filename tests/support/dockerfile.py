"""A Dockerfile read, and its stages replayed into folders of this machine, for machines without Docker.

Law: what is run are the file's own RUN and COPY instructions, with absolute paths below a stage's folder. Programs
that change the machine itself (`apt-get`, `useradd`) do nothing: what they would install has to be here already.
`FROM python` is this run's own Python, with the build's tools of `make setup`. pip uses the cache that this filled.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.support import components
from tests.tidy import tree

#: The stage that is built when none is named.
DAEMON = "daemon"
#: Folders of an image that its instructions name.
_IN_IMAGE = re.compile(r"(?<![\w./$])/(?=(?:opt|src|dist|var)\b)")
_NOTHING = ("apt-get", "useradd")
_STEP_TIMEOUT_S = 600


@dataclass(frozen=True)
class Stage:
    """One `FROM` and what follows it: (instruction, rest of the line)."""

    name: str
    base: str
    steps: tuple[tuple[str, str], ...]

    def last(self, instruction: str) -> str:
        """The instruction of that name that counts; empty if there is none."""
        return next((text for name, text in reversed(self.steps) if name == instruction), "")


def stages() -> dict[str, Stage]:
    """The Dockerfile's stages by name, in order."""
    lines = [line for line in tree.text("Dockerfile").splitlines() if not line.startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    steps = [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]
    found: dict[str, Stage] = {}
    for name, rest in steps:
        if name == "FROM":
            base, _, stage = rest.partition(" AS ")
            found[stage] = Stage(stage, base, ())
        else:
            last = found[next(reversed(found))]
            found[last.name] = Stage(last.name, last.base, (*last.steps, (name, rest)))
    return found


@dataclass
class Built:
    """A stage's folder, and how its programs are started."""

    root: Path
    environ: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: int = 0
    entrypoint: list[str] = field(default_factory=list)

    def bytes(self) -> int:
        """The size of all files."""
        return sum(path.lstat().st_size for path in self.root.rglob("*") if path.is_file())

    def seal(self) -> None:
        """Make everything read-only."""
        for path in (self.root, *self.root.rglob("*")):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & ~0o222)

    def command(self, *args: str, user: int) -> list[str]:
        """What starts the image's program as another user, who has no rights over what is read-only."""
        namespace = ["unshare", "--user", f"--map-user={user}", f"--map-group={user}", "--"]
        return [*namespace, *self.entrypoint, *args]


class Replay:
    """Builds stages below a folder, each once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._built: dict[str, Built] = {}
        self._stages = stages()
        self._programs = self._make_programs()

    def build(self, name: str) -> Built:
        """A stage, after those that it needs."""
        if name not in self._stages:
            return Built(self._folder / "nothing")
        if name not in self._built:
            stage = self._stages[name]
            base = self.build(stage.base)
            root = self._folder / name
            root.mkdir()
            if base.root.exists():
                _copy(base.root, root, base.root, root)
            built = Built(root, dict(base.environ), base.workdir, base.user, list(base.entrypoint))
            for instruction, text in stage.steps:
                self._step(built, instruction, text)
            self._built[name] = built
        return self._built[name]

    def _step(self, built: Built, instruction: str, text: str) -> None:
        match instruction:
            case "RUN":
                self._run(built, text)
            case "COPY":
                self._take(built, shlex.split(text))
            case "ENV":
                for word in shlex.split(text):
                    key, _, value = word.partition("=")
                    built.environ[key] = value
            case "WORKDIR":
                built.workdir = text
                _inside(built, text).mkdir(parents=True, exist_ok=True)
            case "USER":
                built.user = int(text.partition(":")[0])
            case "ENTRYPOINT":
                built.entrypoint = json.loads(text)
            case _:
                pass

    def _run(self, built: Built, text: str) -> None:
        environ = built.environ | {
            "PATH": f"{self._programs}:{os.environ['PATH']}",
            "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", str(components.cache_dir() / "pip")),
        }
        environ.pop("PIP_NO_CACHE_DIR", None)
        done = subprocess.run(
            ["bash", "-euc", _IN_IMAGE.sub(f"{built.root}/", text)],
            cwd=_inside(built, built.workdir),
            env=os.environ | environ,
            capture_output=True,
            text=True,
            timeout=_STEP_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, f"RUN {text}\n{done.stdout}{done.stderr}"

    def _take(self, built: Built, words: list[str]) -> None:
        *options, sources, target = [words[0], words[1:-1], words[-1]]
        (first,) = options
        if first.startswith("--from="):
            source = self.build(first.removeprefix("--from="))
            _copy(_inside(source, *sources), _inside(built, target), source.root, built.root)
            return
        for name in (first, *sources):
            place = _inside(built, built.workdir) / target
            place.parent.mkdir(parents=True, exist_ok=True)
            here = tree.ROOT / name
            if here.is_dir():
                shutil.copytree(here, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(here, place)

    def _make_programs(self) -> Path:
        """A folder for PATH: this run's Python and pip, which have the build's tools, and what does nothing."""
        programs = self._folder / "programs"
        programs.mkdir()
        own = {"python": f'exec {sys.executable} "$@"', "pip": f'exec {sys.executable} -m pip "$@"'}
        for name, text in (own | dict.fromkeys(_NOTHING, "")).items():
            (programs / name).write_text(f"#!/bin/sh\n{text}\n")
            (programs / name).chmod(0o755)
        return programs


def _inside(built: Built, path: str) -> Path:
    return built.root / path.removeprefix("/")


def _copy(source: Path, target: Path, old: Path, new: Path) -> None:
    """Copy a folder to where the same path means another one: programs name their Python in full."""
    shutil.copytree(source, target, copy_function=os.link, symlinks=True, dirs_exist_ok=True)
    for path in target.rglob("bin/*"):
        if path.is_file() and not path.is_symlink():
            content, mode = path.read_bytes(), path.stat().st_mode
            path.unlink()  # the other folder keeps its own
            path.write_bytes(content.replace(bytes(old), bytes(new)))
            path.chmod(mode)
