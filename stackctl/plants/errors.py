"""Why a plant could not be placed."""

from __future__ import annotations

from stackctl.model.verdict import Verdict


class Unplantable(Exception):
    """A plant that cannot be placed safely; nothing of its unit is. `verdict` says why."""

    def __init__(self, verdict: Verdict, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.verdict = verdict
        self.message = message
        self.line = line
