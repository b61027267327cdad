"""The images, as far as they can be made without Docker: the Dockerfile's own steps, then the programs as they would run.

The daemon runs from a read-only folder as another user, with a tier on a real S3 protocol server; the report is made of
what it logged. Not covered: the base image, what `apt-get` installs, and layers.
"""

import json
import os
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from tests.support import components
from tests.support.child_processes import free_ports, start_dying_with_parent
from tests.support.dockerfile import DAEMON, Built, Replay
from tests.support.tiers import S3Server

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.xdist_group("image")]

#: Without the base image; and of the daemon's memory at its highest.
BYTES_MAX = 230_000_000
#: Has a name everywhere, which Spark wants; in the image useradd gives 10001 one.
NOBODY = 65534
DONE_S = 900


def test_the_daemon_and_the_report_run_from_what_the_dockerfile_makes(
    tmp_path: Path, s3_server: S3Server
) -> None:
    components.embedded_broker()
    components.java()
    components.unshare()
    replay = Replay(tmp_path)
    daemon = replay.build(DAEMON)
    report = replay.build("report")
    assert daemon.bytes() <= BYTES_MAX
    state = tmp_path / "state"
    state.mkdir()
    (state / "groups.yaml").write_text(
        "groups: {gold: {publish: {messages: 100}}}\nattach: {tenants: {acme: gold}}\n"
    )
    tier = f"s3://{s3_server.make_bucket()}"
    environ = environment(daemon, state) | {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{s3_server.port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "us-east-1",
    }
    for image in (daemon, report):
        image.seal()

    highest = serve_a_little(daemon, state, environ | {"RGD_LOG__TIER_URL": tier})
    assert highest <= BYTES_MAX

    # As in the CronJob: nothing can be written to but /tmp and the place of reports.
    home = report.root / "var/lib/rgd"
    made = report.command("report", tier, "--out", str(state / "made"), user=NOBODY)
    done = run(made, home, environ | environment(report, home))
    assert done.returncode == 0, done.stderr
    summary = json.loads((state / "made" / "summary.json").read_text())
    assert [row["group"] for row in summary["groups"]] == ["gold"]
    assert (state / "made" / "report.html").stat().st_size > 0


def environment(image: Built, home: Path) -> dict[str, str]:
    path = image.environ["PATH"].replace("/opt/", f"{image.root}/opt/")
    return image.environ | {"PATH": path.replace("$PATH", os.environ["PATH"]), "HOME": str(home)}


def run(
    command: list[str], folder: Path, environ: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=DONE_S,
        check=False,
    )


def serve_a_little(image: Built, state: Path, environ: dict[str, str]) -> int:
    """Start the daemon, probe it, ask it, and stop it; the most memory that it had, in bytes."""
    user = image.user
    # It cannot write where its program is.
    denied = ["unshare", "--user", f"--map-user={user}", "touch", image.root / "opt" / "x"]
    assert run(list(map(str, denied)), state, environ).returncode != 0
    (port,) = free_ports(1)
    printed = state / "printed"
    serve = ("serve", "--listen", f"127.0.0.1:{port}", "--groups", "groups.yaml")
    command = ["env", f"--chdir={state}", *image.command(*serve, user=user)]
    daemon = start_dying_with_parent(command, environment=environ, log=printed)
    try:
        url = f"http://127.0.0.1:{port}"
        probe = image.command("probe", "--ready", user=user)
        while run(probe, state, environ | {"RGD_URL": url}).returncode != 0:
            assert daemon.poll() is None, printed.read_text()
        body = json.dumps({"tenant": "acme", "namespace": "orders", "topic": "eu"}).encode()
        with urllib.request.urlopen(f"{url}/v1/acquire", body, timeout=DONE_S) as answer:
            assert json.load(answer)["granted"]
        status = Path(f"/proc/{daemon.pid}/status").read_text()
        highest = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(DONE_S) == 0
    finally:
        daemon.kill()
        daemon.wait()
    return int(highest.split()[1]) * 1024
