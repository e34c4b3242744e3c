"""Ask one route at a fixed pace, from a process of its own: python -m stackctl_bed.polling BASE PATH SPACING_S UNTIL.

The loads build and read bodies of 150 kB in their own loop; a poll that waited there was once counted as the
server's (a third of what stood in the 99th percentile). UNTIL is a moment of the machine's monotonic clock.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import sys
from typing import Any

from stackctl_bed import client
from stackctl_bed.parent import end_with_parent


async def polled(base: str, path: str, spacing_s: float, until: float) -> list[client.Reply]:
    """Every reply, from a child process. Raises RuntimeError where that process breaks."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "ignore", "-m", "stackctl_bed.polling", base, path, str(spacing_s), str(until)),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "STACKCTL_BED_PARENT": str(os.getpid())},
    )
    try:
        printed, _ = await child.communicate()
    finally:
        if child.returncode is None:
            child.kill()
    if child.returncode != 0:
        raise RuntimeError(f"the poll of {path} ended with exit code {child.returncode}")
    return [client.Reply(**reply) for reply in json.loads(printed)]


async def _poll(base: str, path: str, spacing_s: float, until: float) -> list[dict[str, Any]]:
    seen: list[client.Reply] = []
    async with client.connected(base, timeout=30, reuse=True) as session:
        await client.poll(session, path, spacing_s, until, seen)
    return [dataclasses.asdict(dataclasses.replace(reply, body=None)) for reply in seen]


def main() -> None:
    """Prints the replies as JSON, without their bodies."""
    end_with_parent(signal.SIGKILL)
    base, path, spacing_s, until = sys.argv[1:]
    json.dump(asyncio.run(_poll(base, path, float(spacing_s), float(until))), sys.stdout)


if __name__ == "__main__":
    main()
