"""Boot SGLang for a smoke run, keep it for as many loads as want it, end it for certain."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stackctl.model.errors import StackctlError
from stackctl.smoke import processes
from stackctl.smoke.environment import clean_environment
from stackctl.smoke.model_folder import harmony_folder

INSIDE = Path(__file__).parent / "inside"
BOOT_S = {"frontend": 420.0, "gpu": 900.0}
DRAIN_S = 20.0
FRONTEND_FLAGS = ("--device", "cpu", "--attention-backend", "torch_native")
# A log line per request would be a load of its own.
COMMON_FLAGS = ("--load-format", "dummy", "--served-model-name", "smoke", "--host", "127.0.0.1", "--log-level", "warning")

# Bytecode is written beside the tree, which is the run's own copy: without any, each of a server's three processes
# compiles SGLang at each boot; in a folder of its own, it would be missed for everything that is installed.
_NOT_INHERITED = ("SGLANG_", "STACKCTL_BED_", "PYTHONDONTWRITEBYTECODE")

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Host:
    """What servers are started with: an interpreter that has SGLang, a model folder, the tree to put in front."""

    python: Path
    model: Path
    tree: Path | None
    engine: str = "frontend"


@dataclass(frozen=True)
class Spec:
    """One kind of server; two loads that want the same share it."""

    planted: bool
    flags: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


@dataclass
class Server:
    """A server that answers: its address, its process, the files it writes."""

    name: str
    spec: Spec
    port: int
    process: subprocess.Popen[bytes]
    log: Path
    trace: Path
    boot_s: float
    command: tuple[str, ...]

    @property
    def base(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"


@dataclass
class Fleet:
    """The servers of a run, by spec, in one folder. Use as a context: leaving it ends them all."""

    host: Host
    folder: Path
    progress: Progress
    servers: dict[Spec, Server] = field(default_factory=dict)
    dirty: list[str] = field(default_factory=list)
    started: list[int] = field(default_factory=list)

    def __enter__(self) -> Fleet:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        for server in self.servers.values():  # all drain at once, or ten of them take a minute
            if server.process.poll() is None:
                server.process.terminate()
        for server in list(self.servers.values()):
            self.end(server)
        self.dirty += [f"process {pid} of this run is still there" for session in self.started for pid in processes.session_members(session)]
        remove_scratch(self.folder)

    def get(self, spec: Spec, name: str) -> Server:
        """The server of a spec, booted the first time. Raises StackctlError when it does not come up."""
        server = self.servers.get(spec)
        if server is not None and server.process.poll() is None:
            return server
        if server is not None:
            self.end(server)
        self.progress(f"booting {name}")
        self.servers[spec] = self._boot(spec, f"{len(self.started)}-{name}")
        return self.servers[spec]

    def end(self, server: Server, grace_s: float = DRAIN_S) -> bool:
        """End one server; True when it drained by itself after SIGTERM."""
        self.servers.pop(server.spec, None)
        drained = processes.end(server.process, grace_s)
        if not drained:
            self.dirty.append(f"{server.name} did not end within {grace_s:.0f} s of SIGTERM and was killed")
        return drained

    def sessions(self) -> set[int]:
        """The sessions of all living servers."""
        return {server.process.pid for server in self.servers.values()}

    def _boot(self, spec: Spec, name: str) -> Server:
        log, trace = self.folder / f"{name}.log", self.folder / f"{name}.trace.jsonl"
        trace.touch()
        port = free_port()
        command = self._command(spec, port)
        start = time.monotonic()
        with open(log, "ab") as sink:
            process = processes.start(command, cwd=self.folder, env=self._environment(spec, trace), log=sink)
        self.started.append(process.pid)
        server = Server(name, spec, port, process, log, trace, 0.0, tuple(command))
        try:
            _wait_until_it_answers(server, start + BOOT_S[self.host.engine])
        except BaseException:
            processes.end(process, 0.0)
            raise
        server.boot_s = round(time.monotonic() - start, 1)
        return server

    def _command(self, spec: Spec, port: int) -> list[str]:
        own = FRONTEND_FLAGS if self.host.engine == "frontend" else ()
        flags = [*COMMON_FLAGS, *own, "--model-path", str(self.host.model), "--port", str(port), *spec.flags]
        return [str(self.host.python), "-W", "ignore", "-m", "stackctl_bed.launch", self.host.engine, *flags]

    def _environment(self, spec: Spec, trace: Path) -> dict[str, str]:
        return server_environment(self.host, self.folder, spec.planted) | {
            "STACKCTL_BED_TRACE": str(trace),
            **dict(spec.environment),
        }


def server_environment(host: Host, folder: Path, planted: bool) -> Mapping[str, str]:
    """Variables that keep everything a server writes below `folder`, which is its working directory.

    TMPDIR goes through /proc: a Unix socket's path may have 107 bytes, and the folder's own may be longer.
    """
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    package = [] if host.tree is None or not planted else [str(host.tree / "python")]
    home = folder / "tmp"
    # A setting of the person's own would be a difference that no result tells of.
    inherited = {key: value for key, value in clean_environment().items() if not key.startswith(_NOT_INHERITED)}
    return inherited | {
        "PYTHONPATH": os.pathsep.join([*package, str(INSIDE)]),
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TMPDIR": "/proc/self/cwd/tmp",
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "NO_PROXY": "127.0.0.1",
        "TIKTOKEN_ENCODINGS_BASE": str(harmony_folder(host.model)),
        "STACKCTL_BED_PARENT": str(os.getpid()),
    }


def free_port() -> int:
    """A port of the loopback that was free just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def remove_scratch(folder: Path) -> None:
    """Sockets, bytecode and whatever else the servers left in their temporary folder."""
    import shutil

    shutil.rmtree(folder / "tmp", ignore_errors=True)


def ask(server: Server, path: str, body: dict[str, Any] | None = None, timeout: float = 10.0) -> Any:
    """One request to a server, JSON both ways. Raises OSError or ValueError where there is no answer."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=timeout)
    try:
        data = None if body is None else json.dumps(body)
        connection.request("GET" if body is None else "POST", path, data, {"content-type": "application/json"})
        response = connection.getresponse()
        text = response.read()
        if response.status != 200:
            raise ValueError(f"{path} answered {response.status}: {text[:200]!r}")
        return json.loads(text) if text else None
    finally:
        connection.close()


def _wait_until_it_answers(server: Server, deadline: float) -> None:
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            raise StackctlError(
                f"the server {server.name} ended with {server.process.returncode} while booting:\n{end_of(server.log)}", str(server.log)
            )
        # Ready is said when SGLang's own warm-up request came back.
        if b"stackctl: the server is ready" in server.log.read_bytes():
            return
        time.sleep(0.2)
    raise StackctlError(f"the server {server.name} did not answer in time:\n{end_of(server.log)}", str(server.log))


def end_of(log: Path, lines: int = 12) -> str:
    """The last lines of a log, indented."""
    text = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(f"    {line[:300]}" for line in text[-lines:])
