"""Drive one load against one server: a JSON object of settings on stdin, one of results on stdout.

python -m stackctl_bed.drive. What is printed otherwise goes to stderr.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import json
import os
import signal
import sys
import traceback

from stackctl_bed.parent import end_with_parent
from stackctl_bed.target import Outcome, Target


def main() -> int:
    """Always an outcome: a load that broke is a problem in it."""
    end_with_parent(signal.SIGKILL)
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    plan = json.load(sys.stdin)
    load = importlib.import_module(f"stackctl_bed.loads.{plan.pop('load')}")
    plan["pids"] = tuple(plan.get("pids", ()))
    try:
        outcome = _loop()(load.run(Target(**plan)))
    except Exception as error:  # whatever stops a load is a reason to be told, with its traceback in the log
        traceback.print_exc()
        outcome = Outcome(problems=[f"the load broke: {type(error).__name__}: {error}"])
    json.dump(dataclasses.asdict(outcome), report)
    report.flush()
    return 0


def _loop():  # noqa: ANN202 - a runner of whichever loop there is
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


if __name__ == "__main__":
    sys.exit(main())
