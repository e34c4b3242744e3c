"""Start SGLang's HTTP server for a smoke run: python -m stackctl_bed.launch frontend|gpu SERVER-FLAGS...

frontend: the real server, tokenizer manager and detokenizer, with a stand-in for the scheduler. gpu: all of
it real. In both the probe is installed, and the process ends when whoever started it is gone.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Any


def main() -> None:
    """Run until a signal."""
    engine, *flags = sys.argv[1:]
    _end_with_parent()
    from sglang.srt.entrypoints.http_server import launch_server
    from sglang.srt.server_args import prepare_server_args

    from stackctl_bed import probe
    from stackctl_bed.scheduler import run_stand_in

    probe.install(trace=engine == "gpu")
    keywords: dict[str, Any] = {"launch_callback": _ready}
    if engine == "frontend":
        keywords["run_scheduler_process_func"] = run_stand_in
    launch_server(prepare_server_args(flags), **keywords)


def _ready() -> None:
    from stackctl_bed import probe

    probe.apply_control(probe._manager())
    print("stackctl: the server is ready", flush=True)


def _end_with_parent() -> None:
    """SIGTERM for us when the parent dies, however it dies: else a killed run would leave a server behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)
    if os.getppid() != int(os.environ["STACKCTL_BED_PARENT"]):
        sys.exit("stackctl_bed: whoever started this is gone already")


if __name__ == "__main__":
    main()
