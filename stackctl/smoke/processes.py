"""Start children that can be ended for certain: each in a session of its own, told apart by its id.

A server starts more processes; they inherit its session. So whatever became of the parent, all that is left
of a run are the processes of its sessions, and only those are ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Stat:
    """What the kernel says of a process: its session, CPU seconds so far, state letter."""

    pid: int
    session: int
    cpu_s: float
    state: str


def start(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: IO[bytes], stdin: int = subprocess.DEVNULL, stdout: int | None = None
) -> subprocess.Popen[bytes]:
    """A child in a new session; what it prints goes to `log`, also its stdout unless that is given."""
    return subprocess.Popen(
        command, cwd=cwd, env=dict(env), stdin=stdin, stdout=log if stdout is None else stdout, stderr=log,
        start_new_session=True,
    )  # fmt: skip


def end(process: subprocess.Popen[bytes], grace_s: float) -> bool:
    """End a child and all of its session. True when SIGTERM to the child was enough, within `grace_s`."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
    gone = _wait_for(process, grace_s)
    kill_session(process.pid)
    process.wait()
    return gone


def _wait_for(process: subprocess.Popen[bytes], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None and not session_members(process.pid):
            return True
        time.sleep(0.05)
    return False


def kill_session(session: int) -> None:
    """SIGKILL to every process of a session, until there is none."""
    for _ in range(100):
        members = session_members(session)
        if not members:
            return
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def session_members(session: int) -> list[int]:
    """The living processes of a session; one that ended and was not waited for is not living."""
    return [stat.pid for stat in stats() if stat.session == session and stat.state not in "ZX"]


def stats() -> Iterator[Stat]:
    """Of every process on the machine that can be seen."""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and (stat := read_stat(int(entry.name))):
            yield stat


def read_stat(pid: int) -> Stat | None:
    """Of one process; None when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = text[text.rindex(b")") + 2 :].split()  # a name may hold spaces and brackets
    return Stat(pid, int(fields[3]), (int(fields[11]) + int(fields[12])) / TICKS, fields[0].decode())
