"""A real Apache Pulsar standalone for the tests that need one.

The law: a standalone listens on the loopback only, on ports and in a folder of its own, and does not
outlive the process that started it, however that process ends (on Linux; elsewhere it outlives a
SIGKILL of that process).
How: the distribution is fetched once, through Maven, into the cache (`ensure_distribution`);
`PulsarStandalone` writes its own configuration, starts the JVM and polls until Pulsar serves;
`pulsar_shell` runs commands of pulsar-admin, several in one JVM.
What the want of Java or Maven means for a test is decided in tests/support/components.py; the
standalone that all tests of a run share is a fixture in tests/support/fixtures.py.
"""

import asyncio
import contextlib
import fcntl
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final, Self

from tests.support import components
from tests.support.child_processes import end, free_ports, start_dying_with_parent

PULSAR_VERSION = "4.0.8"
#: The sole cluster of a standalone, under the name that Pulsar's own configuration gives it.
CLUSTER = "standalone"

FETCH_TIMEOUT_S = 900
READY_TIMEOUT_S = 300
STOP_TIMEOUT_S = 20
RESTART_TIMEOUT_S = 120
COMMAND_TIMEOUT_S = 600
_POLL_S = 0.1
#: What a bookie logs that finds its own registration and deletes it again and again.
_LOST_REGISTRATION = b"Lock on resource /ledgers/available/"
_RESTARTS_MAX = 5
_HTTP_TIMEOUT_S = 5
#: A port may be taken between our look and Pulsar's bind, six seconds later; then others are tried.
_START_ATTEMPTS_MAX = 3
_LOG_TAIL_CHARS_MAX = 4000
_ERRORS_SHOWN_MAX = 40
_ERROR_CHARS_MAX = 300

_MAVEN_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
_ARTIFACT = f"org.apache.pulsar:pulsar-server-distribution:{PULSAR_VERSION}:tar.gz:bin"
_USAGE_TRANSPORT = "org.apache.pulsar.broker.resourcegroup.ResourceUsageTopicTransportManager"
_TOKEN_PLUGIN = "org.apache.pulsar.client.impl.auth.AuthenticationToken"

_SERVER_MEMORY = "-Xms512m -Xmx1g -XX:MaxDirectMemorySize=512m"
#: Pulsar's own choice (ZGC, all memory touched at the start) takes twice as long to start and four
#: times the memory, for a throughput that no test asks for. Classes of a distribution are sound: to verify them is a
#: seventh of a start.
SMALL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+PerfDisableSharedMem -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
#: Unset, it is the period in which Pulsar looks for topics without subscriptions: one that a test has just made
#: would be deleted between two steps of the test.
KEEPING_TOPICS: Final = {"brokerDeleteInactiveTopicsMaxInactiveDurationSeconds": "86400"}
#: What Pulsar's scripts read besides their arguments; a developer's own settings stay out of tests.
_FOREIGN_ENVIRONMENT = ("PULSAR_", "BOOKIE_", "BK_")

# Never through a proxy that the environment names: everything here is on the loopback.
loopback_http = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class PulsarStartError(Exception):
    """The JVM ended, or did not serve in time; the message has the end of its log."""


def ensure_distribution() -> Path:
    """The unpacked server distribution, fetched through Maven when the cache lacks it.

    Ends the test with the remedy (see `components.missing`) where it cannot be fetched. Of several
    runs at once, one fetches and the others wait for it.
    """
    home = components.cache_dir() / f"pulsar-{PULSAR_VERSION}"
    if home.is_dir():
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    with (home.parent / f"{home.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the kernel lets go of it when its holder dies
        if not home.is_dir():
            _fetch_distribution(home)
    return home


def pulsar_shell(commands: Sequence[str], *, admin_url: str, token: str = "") -> list[str]:
    """Run commands such as `admin tenants list` in one JVM; what each printed, errors included.

    A failed command does not stop the ones after it, and Pulsar's shell tells success only by what
    it prints. `admin_url` may be any server that speaks Pulsar's admin API. RuntimeError where the
    shell itself failed.
    """
    settings = {"webServiceUrl": admin_url, "brokerServiceUrl": ""}
    if token:
        settings |= {"authPlugin": _TOKEN_PLUGIN, "authParams": f"token:{token}"}
    home = ensure_distribution()
    with tempfile.TemporaryDirectory(prefix="rgd-pulsar-shell-") as folder_name:
        folder = Path(folder_name)
        script, client_conf = folder / "commands", folder / "client.conf"
        script.write_text("".join(f"{command}\n" for command in commands))
        client_conf.write_text(edited_conf("", settings))
        # The shell makes a folder in the user's home, which Java does not take from $HOME.
        java_options = f"{SMALL_JVM} -Duser.home={folder} -Djava.io.tmpdir={folder}"
        printed = _run(
            [home / "bin" / "pulsar-shell", "-c", client_conf, "-np", "-f", script],
            environment=_environment(folder, PULSAR_EXTRA_OPTS=java_options),
        )
    return split_shell_output(printed, commands)


def edited_conf(text: str, settings: Mapping[str, str]) -> str:
    """A Java properties file with these settings in place of its own of the same names.

    Replaced and not appended: BookKeeper, which reads the same file, makes a list of a key that
    comes twice, and standalone.conf ends without a line break.
    """
    kept = [line for line in text.splitlines() if line.split("=", 1)[0].strip() not in settings]
    return "".join(f"{line}\n" for line in [*kept, *(f"{k}={v}" for k, v in settings.items())])


def split_shell_output(printed: str, commands: Sequence[str]) -> list[str]:
    """What each command printed, from the output of `pulsar-shell --no-progress`.

    Raises RuntimeError unless the shell announced exactly these commands, in this order.
    """
    blocks, rest = [], printed
    for number, command in enumerate(commands, start=1):
        announced = f"[{number}/{len(commands)}] Executing {command.strip()}\n"
        head, found, rest = rest.partition(announced)
        if not found:
            raise RuntimeError(f"pulsar-shell did not run {command!r}; it printed:\n{printed}")
        blocks.append(head)
    blocks.append(re.sub(r"Goodbye!\s*\Z", "", rest))
    return [block.strip() for block in blocks[1:]]


@dataclass(frozen=True, slots=True)
class Ports:
    """Where one standalone listens, on 127.0.0.1."""

    service: int
    admin: int
    bookie: int
    #: Only where further brokers may join.
    zookeeper: int


class PulsarStandalone:
    """One Apache Pulsar in one JVM, without functions and stream storage.

    As a context manager it is started on entry and stopped, its data deleted, on exit. A test that
    takes Pulsar away uses `kill` or `stop`, then `restart`: same ports, same data.

    Args:
        folder: where configuration, data and log go; it stays. A temporary one, if None.
        usage_period_s: brokers tell each other the usage of resource groups so often, on
            `non-persistent://pulsar/system/resource-usage`.
        settings: further lines for standalone.conf, by Pulsar's own names.
        admin_token: a superuser's token, where the settings ask for one.
        is_shared: with a ZooKeeper, so that further brokers may join (tests/support/further_broker.py).
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        usage_period_s: int | None = None,
        settings: Mapping[str, str] | None = None,
        admin_token: str = "",
        is_shared: bool = False,
    ) -> None:
        self._is_shared = is_shared
        self._headers = {"Content-Type": "application/json"}
        if admin_token:
            self._headers["Authorization"] = f"Bearer {admin_token}"
        self._home = ensure_distribution()
        self._is_folder_ours = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="rgd-pulsar-"))
        self.log = self.folder / "pulsar.log"  # of all starts, one after the other
        self._pulsar = self._home / "bin" / "pulsar"
        self._conf = self.folder / "standalone.conf"
        self._data = self.folder / "data"
        self._scratch = self.folder / "tmp"
        self._settings = dict(settings or {})
        self._tells_usage = usage_period_s is not None
        if self._tells_usage:
            self._settings |= {
                "resourceUsageTransportClassName": _USAGE_TRANSPORT,
                "resourceUsageTransportPublishIntervalInSecs": str(usage_period_s),
            }
        self._ports: Ports | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @property
    def ports(self) -> Ports:
        """Where it listens, or will listen again after `restart`."""
        assert self._ports is not None
        return self._ports

    @property
    def service_url(self) -> str:
        """For Pulsar clients."""
        return f"pulsar://127.0.0.1:{self.ports.service}"

    @property
    def admin_url(self) -> str:
        """For the admin REST API; without a slash at the end."""
        return f"http://127.0.0.1:{self.ports.admin}"

    @property
    def pid(self) -> int | None:
        """The JVM's process id while it runs, else None."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    def start(self) -> None:
        """Start on fresh ports and data, and wait until Pulsar serves, or raise PulsarStartError."""
        for attempt in range(1, _START_ATTEMPTS_MAX + 1):
            self._ports = Ports(*free_ports(4))
            self._write_fresh_folder()
            try:
                self._launch()
            except PulsarStartError as error:
                if attempt == _START_ATTEMPTS_MAX or "Address already in use" not in str(error):
                    raise
            else:
                return

    def restart(self, *, is_wiped: bool = False, settings: Mapping[str, str] | None = None) -> None:
        """Start again on the same ports, on the same data or on none, after `kill`, `stop`, or as it is.

        Args:
            is_wiped: without the data.
            settings: further lines for standalone.conf, until the next restart.
        """
        # A SIGKILL may leave a bookie that loses its registration again and again (`restart_registered`).
        self.stop(RESTART_TIMEOUT_S)
        if is_wiped:
            self._write_fresh_folder()
        else:
            self._write_conf(settings or {})
        self._launch()

    async def restart_registered(self) -> None:
        """Start it again until its bookie stays registered.

        After a SIGKILL a standalone 4.0.8 finds the registration of its dead self, and now and then
        deletes and renews it some hundred times a second for as long as it runs. Its health is "ok"
        all the while, and persistent topics fail ("Not enough non-faulty bookies"). An orderly stop,
        which `restart` begins with, leaves no such registration behind.
        """
        for _ in range(_RESTARTS_MAX):
            log_offset = self.log.stat().st_size
            await asyncio.to_thread(self.restart)
            if _LOST_REGISTRATION not in self.log.read_bytes()[log_offset:]:
                return
        raise PulsarStartError(f"Apache Pulsar does not come back; see {self.log}")

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End Pulsar in order, with SIGTERM; with SIGKILL if it has not ended within the time."""
        if self._process is not None:
            end(self._process, timeout_s)
        self._process = None

    def kill(self) -> None:
        """End Pulsar as a crash would, with SIGKILL, and wait until it is gone."""
        if self._process is None:
            return
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process = None

    def close(self) -> None:
        """Stop, and delete the data, or the whole folder if it is a temporary one."""
        self.stop()
        for leftover in [self.folder] if self._is_folder_ours else [self._data, self._scratch]:
            shutil.rmtree(leftover, ignore_errors=True)

    def _write_fresh_folder(self) -> None:
        shutil.rmtree(self._data, ignore_errors=True)
        for folder in (self._data, self._scratch):
            folder.mkdir(parents=True, exist_ok=True)
        self._write_conf({})
        if self._tells_usage:
            self._initialise_metadata()

    def _write_conf(self, further: Mapping[str, str]) -> None:
        loopback = next(name for _, name in socket.if_nameindex() if name.startswith("lo"))
        settings = {
            "bindAddress": "127.0.0.1",
            "advertisedAddress": "127.0.0.1",
            "brokerServicePort": str(self.ports.service),
            "webServicePort": str(self.ports.admin),
            # The bookie would bind to 0.0.0.0, and to a port of its own choice.
            "listeningInterface": loopback,
            "allowEphemeralPorts": "true",
            "brokerClient_dnsLookupBindAddress": "127.0.0.1",  # its resolver too: 0.0.0.0
            **KEEPING_TOPICS,
            **self._settings,
            **further,
        }
        shipped = (self._home / "conf" / "standalone.conf").read_text()
        self._conf.write_text(edited_conf(shipped, settings))

    def _initialise_metadata(self) -> None:
        """Name the cluster before the first start, which else fails for want of one.

        With the transport configured Pulsar makes the tenant `pulsar` while it starts ("Clusters do
        not exist"); without, it names the cluster afterwards and nothing is amiss.
        """
        store = f"rocksdb://{self._data / 'metadata'}"
        command: list[str | Path] = [self._pulsar, "initialize-cluster-metadata"]
        command += ["--cluster", CLUSTER, "--metadata-store", store]
        command += ["--configuration-metadata-store", store]
        command += ["--web-service-url", self.admin_url, "--broker-service-url", self.service_url]
        _run(command, environment=self.environment())

    def _launch(self) -> None:
        log_offset = self.log.stat().st_size if self.log.exists() else 0
        command: list[str | Path] = [self._pulsar, "standalone", "-nss", "-nfw"]
        command += ["-c", self._conf, "-a", "127.0.0.1"]
        command += ["--metadata-dir", self._data / "metadata"]
        command += ["--bookkeeper-dir", self._data / "bookkeeper"]
        command += ["--bookkeeper-port", str(self.ports.bookie)]
        if self._is_shared:
            command += ["--zookeeper-port", str(self.ports.zookeeper)]
            command += ["--zookeeper-dir", self._data / "zookeeper"]
        self._process = start_dying_with_parent(
            command, environment=self.environment(), log=self.log
        )
        try:
            fault = self._wait_until_ready(self._process)
        except BaseException:
            self.kill()
            raise
        if fault:
            self.kill()
            raise PulsarStartError(f"{fault}; {self.log} says:\n{self._log_since(log_offset)}")

    def environment(self) -> dict[str, str]:
        """Of its JVM, or of another broker's beside it."""
        shared = {"PULSAR_STANDALONE_USE_ZOOKEEPER": "1"} if self._is_shared else {}
        return shared | _environment(
            self._scratch,
            PULSAR_STANDALONE_CONF=str(self._conf),
            PULSAR_MEM=_SERVER_MEMORY,
            PULSAR_GC=SMALL_JVM,
            PULSAR_GC_LOG="-Xlog:all=warning",  # empty would mean a log of its own
            PULSAR_EXTRA_OPTS=f"-Dpulsar.allocator.exit_on_oom=true -Djava.io.tmpdir={self._scratch}",
        )

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> str:
        """Why it is not going to serve; empty once it does."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self._is_ready():
            if time.monotonic() > deadline:
                return f"Apache Pulsar does not serve after {READY_TIMEOUT_S} s"
            with contextlib.suppress(subprocess.TimeoutExpired):
                status = process.wait(_POLL_S)
                return f"Apache Pulsar ended with {status} before it served"
        return ""

    def _is_ready(self) -> bool:
        # The namespaces come after the first answers to health checks; this one comes last.
        with contextlib.suppress(
            OSError, http.client.HTTPException
        ):  # refused, cut short, late, not 200
            namespaces = json.loads(self._ask("namespaces/pulsar"))
            if "pulsar/system" in namespaces and self._ask("brokers/health").strip() == "ok":
                self._make_default_namespace()
                return True
        return False

    def _make_default_namespace(self) -> None:
        """Pulsar makes `public/default` itself, but on a busy machine that may fail, which it only logs."""
        tenant, namespace = f'{{"allowedClusters": ["{CLUSTER}"]}}', "{}"
        for path, body in (("tenants/public", tenant), ("namespaces/public/default", namespace)):
            try:
                self._ask(path, body.encode(), "PUT")
            except urllib.error.HTTPError as error:
                if error.code != HTTPStatus.CONFLICT:  # it is there
                    raise

    def _ask(self, path: str, body: bytes | None = None, method: str = "GET") -> str:
        url = f"{self.admin_url}/admin/v2/{path}"
        asked = urllib.request.Request(url, body, self._headers, method=method)
        with loopback_http.open(asked, timeout=_HTTP_TIMEOUT_S) as response:
            return str(response.read(), "utf-8")

    def _log_since(self, offset: int) -> str:
        """The errors that were logged since the offset, then the last lines."""
        text = self.log.read_bytes()[offset:].decode(errors="replace")
        errors = [line for line in text.splitlines() if re.search(r"Exception|ERROR", line)]
        return "\n".join([*errors[:_ERRORS_SHOWN_MAX], "...", text[-_LOG_TAIL_CHARS_MAX:]])


def _environment(scratch: Path, **changes: str) -> dict[str, str]:
    """This process's environment with only our own settings for Pulsar's scripts."""
    java = components.java()
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_FOREIGN_ENVIRONMENT) and name not in {"OPTS", "CLASSPATH"}
    }
    if java != Path(environment.get("JAVA_HOME", "")) / "bin" / "java":
        environment.pop("JAVA_HOME", None)  # it names no Java, and the scripts would insist on it
    return environment | {"PULSAR_LOG_DIR": str(scratch)} | changes


def _run(
    command: Sequence[str | Path],
    *,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = COMMAND_TIMEOUT_S,
) -> str:
    """What a program printed on both streams; RuntimeError, with the end of it, if it failed."""
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if done.returncode != 0:
        printed = done.stdout[-_LOG_TAIL_CHARS_MAX:].strip()
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {printed}")
    return done.stdout


def _first_error(printed: str) -> str:
    """One line of the many that Maven says, for the summary of a test run."""
    errors = [line for line in printed.splitlines() if "[ERROR]" in line] or [printed]
    return " ".join(errors[0].split())[:_ERROR_CHARS_MAX]


def _fetch_distribution(home: Path) -> None:
    """Download and unpack beside the final folder, then rename; the caller holds the lock."""
    maven = components.maven()
    for leftover in home.parent.glob(f"{home.name}.partial-*"):
        shutil.rmtree(leftover, ignore_errors=True)  # of a run that was killed
    with tempfile.TemporaryDirectory(prefix=f"{home.name}.partial-", dir=home.parent) as name:
        unpacked = Path(name)
        command: list[str | Path] = [maven, "-q", "-B", "-Dstyle.color=never", _MAVEN_COPY]
        command += [f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={unpacked}"]
        command += ["-Dmdep.useBaseVersion=true"]
        try:
            _run(command, timeout_s=FETCH_TIMEOUT_S)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            components.missing(
                f"Apache Pulsar {PULSAR_VERSION}",
                reason=f"Maven could not fetch {_ARTIFACT}: {_first_error(str(error))}",
                remedy=f"give Maven a repository that it can reach, or unpack it as {home} by hand",
            )
        (archive,) = unpacked.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(unpacked, filter="data")
        (unpacked / f"apache-pulsar-{PULSAR_VERSION}").rename(home)
