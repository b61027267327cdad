"""Generate rgd/wire/*_pb2.py and their types from every .proto below this folder.

The generated files are committed, so that an installation needs no compiler; `--check` says whether
they are what the .proto files give and exits 1 where they are not (`make proto-check`).
protoc runs into a temporary folder with this folder as its root, so a file's name inside protobuf's
registry is its path here (`rgd/v1/usage.proto`) and cannot collide with another library's. Then the
results are laid flat into rgd/wire, and imports among them follow.
Run by `make proto`; needs the `lint` extra.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PROTO = Path(__file__).resolve().parent
WIRE = PROTO.parent / "rgd" / "wire"
GENERATED = ("*_pb2.py", "*_pb2.pyi")


def main() -> int:
    """Write the files, or compare them; returns the exit code."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--check", action="store_true", help="compare, write nothing")
    fresh = generate()
    present = {path.name: path.read_text() for pattern in GENERATED for path in WIRE.glob(pattern)}
    stale = sorted(name for name in {*fresh, *present} if fresh.get(name) != present.get(name))
    if arguments.parse_args().check:
        if stale:
            print(f"not what proto/ gives: {', '.join(stale)}; run `make proto`", file=sys.stderr)
        return 1 if stale else 0
    for name in stale:
        if name in fresh:
            (WIRE / name).write_text(fresh[name])
        else:
            (WIRE / name).unlink()
        print(f"rgd/wire/{name}")
    return 0


def generate() -> dict[str, str]:
    """Run protoc over every .proto; returns file name -> text."""
    sources = sorted(str(path.relative_to(PROTO)) for path in PROTO.rglob("*.proto"))
    if not sources:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        plugin = Path(sys.executable).with_name("protoc-gen-mypy")
        command = [
            *(sys.executable, "-m", "grpc_tools.protoc"),
            f"--plugin=protoc-gen-mypy={plugin}",
            f"--proto_path={PROTO}",
            f"--python_out={folder}",
            f"--mypy_out=quiet:{folder}",
            *sources,
        ]
        subprocess.run(command, check=True)
        outputs = [path for pattern in GENERATED for path in Path(folder).rglob(pattern)]
        texts = {path.name: _laid_flat(path.read_text()) for path in outputs}
        if len(texts) != len(outputs):
            raise SystemExit(f"two .proto files of one name: {', '.join(sources)}")
        return texts


def _laid_flat(text: str) -> str:
    """Prefix the names of generated modules with rgd.wire; google's own stay."""
    for pattern, flat in (
        (r"^from (?!google)[\w.]+ import (\w+_pb2)", r"from rgd.wire import \1"),
        (r"^import (?!google)(?:\w+\.)*(\w+_pb2)$", r"from rgd.wire import \1"),
        (r"\(DESCRIPTOR, '[\w.]*?(\w+_pb2)'", r"(DESCRIPTOR, 'rgd.wire.\1'"),
    ):
        text = re.sub(pattern, flat, text, flags=re.MULTILINE)
    return text


if __name__ == "__main__":
    sys.exit(main())
