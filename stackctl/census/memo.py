"""Verdicts kept between runs, each under what it was made from, so that a second run reads no file twice."""

from __future__ import annotations

from types import TracebackType

from stackctl.model.stack import Entry, Plant
from stackctl.plants.judging import judge_plant
from stackctl.plants.kind import Judgement
from stackctl.plants.view import View


class Memo:
    """A judge that remembers (placeholder until the cache is measured)."""

    def __enter__(self) -> Memo:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None

    def judge(self, entry: Entry, plant: Plant, view: View) -> Judgement:
        return judge_plant(entry, plant, view)
