"""Children are ended for certain, whatever they do, and what others use of the machine is seen."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from stackctl.smoke import noise, processes

STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"])
print("up", flush=True)
{then}
"""


def started(tmp_path, code: str) -> subprocess.Popen[bytes]:
    with open(tmp_path / "log", "wb") as log:
        process = processes.start([sys.executable, "-c", code], cwd=tmp_path, env={"PATH": "/bin"}, log=log)
    end = time.monotonic() + 20
    while b"up" not in (tmp_path / "log").read_bytes() and time.monotonic() < end:
        time.sleep(0.02)
    return process


@pytest.mark.parametrize("then", ["time.sleep(600)", "os._exit(3)"], ids=["deaf to SIGTERM", "died, its child lives"])
def test_a_whole_session_is_ended(tmp_path, then):
    process = started(tmp_path, STUBBORN.format(then=then))
    assert processes.session_members(process.pid)
    assert not processes.end(process, 0.3)
    assert processes.session_members(process.pid) == []


def test_one_that_ends_by_itself_is_told(tmp_path):
    process = started(tmp_path, "import time; print('up', flush=True); time.sleep(600)")
    assert processes.end(process, 10)
    assert process.returncode == -15


def test_a_name_with_brackets_is_read(tmp_path):
    code = "import ctypes, time; ctypes.CDLL(None).prctl(15, b'a) R (b', 0, 0, 0); print('up', flush=True); time.sleep(600)"
    process = started(tmp_path, code)
    stat = processes.read_stat(process.pid)
    processes.end(process, 5)
    assert stat is not None and stat.session == process.pid and stat.state in "RS"
    assert processes.read_stat(process.pid) is None


def test_noise_is_what_is_not_ours(tmp_path):
    """A process that burns a core: foreign as long as its session is not named, ours when it is."""
    process = started(tmp_path, "print('up', flush=True)\nwhile True: pass")
    try:
        before = [noise.moment(()), noise.moment({process.pid})]
        time.sleep(1.0)
        after = [noise.moment(()), noise.moment({process.pid})]
    finally:
        processes.end(process, 1)
    foreign, own = (noise.foreign_cpu(*pair) for pair in zip(before, after, strict=True))
    used = (after[1].own_s - before[1].own_s) - (after[0].own_s - before[0].own_s)
    assert used > 0.1  # of a second, on a machine that others use as well
    assert foreign - own == pytest.approx(used / (after[0].at - before[0].at), abs=0.1)
