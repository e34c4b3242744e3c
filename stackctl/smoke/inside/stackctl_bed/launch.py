"""Start SGLang's HTTP server for a smoke run: python -m stackctl_bed.launch frontend|gpu SERVER-FLAGS...

frontend: the real server, tokenizer manager and detokenizer, with a stand-in for the scheduler. gpu: all of
it real. In both the probe is installed, and the process ends when whoever started it is gone.
"""

from __future__ import annotations

import signal
import sys
from typing import Any

from stackctl_bed.parent import end_with_parent


def main() -> None:
    """Run until a signal."""
    engine, *flags = sys.argv[1:]
    end_with_parent(signal.SIGTERM)
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


if __name__ == "__main__":
    main()
