"""What every plant kind knows: how to judge a plant, how to plant it, and examples of both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from stackctl.model.stack import Entry, Plant
from stackctl.model.verdict import Verdict
from stackctl.plants.view import View


@dataclass(frozen=True)
class Judgement:
    """What became of one plant: `line` is where a person should look, `evidence` how it is known.

    `with_plant` names the plant because of which this one was left out, if it was.
    """

    verdict: Verdict
    message: str = ""
    path: str = ""
    line: int = 0
    symbol: str = ""
    evidence: str = ""
    with_plant: str = ""


@dataclass(frozen=True)
class Option:
    """One key of a kind's manifest table: its type, whether it must be there, what it says."""

    type: type
    says: str
    required: bool = False
    code: str = ""  # "expression" or "statements": must parse as that


@dataclass(frozen=True)
class Example:
    """A module before and after a plant; `verdict` is what judging `before` says, `after` "" if refused.

    `files` are others: "files/..." and "patches/..." are the stack's own, the rest stands in the tree. Of a
    kind without host, `after` is the file that it makes.
    """

    options: Mapping[str, Any]
    before: str
    after: str = ""
    verdict: Verdict = Verdict.LOST
    host: str = "pkg.mod:"
    files: Mapping[str, str] = field(default_factory=dict)
    says: str = ""


class Kind(ABC):
    """One kind of plant. `judge` and `plant` find their place with the same code."""

    name: ClassVar[str]
    summary: ClassVar[str]
    options: ClassVar[Mapping[str, Option]]
    examples: ClassVar[tuple[Example, ...]] = ()
    host: ClassVar[str] = "module"  # "module": a host is needed; "none": the kind has no host

    @abstractmethod
    def judge(self, plant: Plant, entry: Entry, view: View) -> Judgement:
        """What became of the plant in this view. May raise Unplantable: host gone, ambiguous, unparsable."""

    @abstractmethod
    def plant(self, plant: Plant, entry: Entry, view: View) -> None:
        """Make the plant whole in this view. Raises Unplantable and leaves the view as it was."""

    def leftover(self, plant: Plant, entry: Entry, view: View) -> bool:
        """Whether something of ours is still here although stock upstream, which adopted it, has it otherwise."""
        return False

    def uproot(self, plant: Plant, entry: Entry, view: View) -> None:
        """Take out what `leftover` found."""
        raise NotImplementedError(f"{self.name} leaves nothing over")

    def check(self, plant: Plant, entry: Entry) -> list[str]:
        """What is wrong with the declaration itself, beyond types and missing keys."""
        return []

    def words(self, plant: Plant) -> frozenset[str]:
        """Names that a module must hold if it holds this plant; none if only reading the module tells."""
        return frozenset()

    def files(self, plant: Plant) -> list[str]:
        """The entry's own files that this plant uses, relative to the entry's folder."""
        return []

    def path(self, plant: Plant, view: View) -> str:
        """Where the plant lives in this view's tree."""
        return view.path_of(plant.module)
