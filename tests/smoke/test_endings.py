"""However a run ends, nothing of it is left: no process, no socket, no shared memory, no file outside its folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stackctl.smoke import processes
from tests.smoke.booting import RELEASE, result, smoke, stack_without
from tests.support import ROOT

pytestmark = pytest.mark.smoke
SHORT = ("ttft", "--arm", "on", "--case", "c1", "--runs", "1", "--set", "seconds=1")


def outside() -> dict[str, set[str]]:
    """What the machine holds that a run could have left: shared memory, sockets of SGLang's in the temporary folder."""
    names = {str(path) for path in Path("/tmp").iterdir() if path.is_socket() or path.name.startswith(("stackctl-bundle", "stackctl-tree", "torchinductor"))}
    return {"shared memory": set(os.listdir("/dev/shm")), "files": names, "servers": {str(pid) for pid in servers()}}


def servers() -> list[int]:
    """Processes that run our bed, whoever started them."""
    found = []
    for stat in processes.stats():
        try:
            command = Path(f"/proc/{stat.pid}/cmdline").read_bytes()
        except OSError:
            continue
        if b"stackctl_bed" in command:
            found.append(stat.pid)
    return found


def settled(before: dict[str, set[str]], seconds: float) -> dict[str, set[str]]:
    """What is there more than before, once nothing more goes."""
    end = time.monotonic() + seconds
    while True:
        more = {kind: found - before[kind] for kind, found in outside().items()}
        if not any(more.values()) or time.monotonic() > end:
            return {kind: found for kind, found in more.items() if found}
        time.sleep(0.2)


def test_a_whole_run_leaves_only_its_folder(tmp_path):
    stack, before = stack_without(tmp_path / "stack"), outside()
    done = smoke(stack, tmp_path / "out", *SHORT)
    assert settled(before, 0.0) == {}, done.stderr
    table = result(tmp_path / "out", "ttft")
    assert table["verdict"] in ("passed", "not-judged"), done.stdout  # a busy machine may leave it open
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["servers", "ttft"]
    assert not (tmp_path / "out" / "servers" / "tmp").exists()


@pytest.mark.parametrize("moment", ["booting", "loading"])
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_stopped_leaves_no_process(tmp_path, signum, moment):
    stack, before = stack_without(tmp_path / "stack"), outside()
    command = [sys.executable, "-m", "stackctl", "--stack", str(stack), "smoke", "run", "ttft", "--arm", "on", "--set", "seconds=60"]
    command += ["--onto", f"v{RELEASE}", "--out", str(tmp_path / "out")]
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
    word = b"booting" if moment == "booting" else b"ttft: c1"
    end = time.monotonic() + 240
    while word not in (tmp_path / "log").read_bytes() and time.monotonic() < end:
        assert process.poll() is None, (tmp_path / "log").read_text()
        time.sleep(0.1)
    time.sleep(3)
    assert servers()
    process.send_signal(signum)
    code = process.wait(60)
    assert code == (-9 if signum == signal.SIGKILL else 130)
    # After a SIGKILL the kernel tells the children; a server then drains, as after any SIGTERM.
    assert settled(before, 40.0 if signum == signal.SIGKILL else 0.0) == {}


def test_a_time_limit_ends_it_and_passes_nothing(tmp_path):
    stack, before = stack_without(tmp_path / "stack"), outside()
    done = smoke(stack, tmp_path / "out", "ttft", "--arm", "on", "--set", "seconds=60", "--time-limit", "1")
    assert done.returncode == 2 and "not done within 1 minutes" in done.stderr
    assert settled(before, 0.0) == {} and not list((tmp_path / "out").glob("*/result.json"))
