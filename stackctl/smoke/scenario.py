"""A smoke scenario: one TOML file that says which server to boot, how to load it, and what must hold.

    title = "..."
    load = "mixed"                       # a module of stackctl_bed.loads
    runs = 3                             # of each arm and case, alternating
    environment = { NAME = "value" }     # of every server
    flags = ["--flag"]                   # of every server
    settings = { seconds = 9 }           # of every load

    [[arm]]                              # one side of the comparison, all from one tree
    name = "on"
    environment = { SWITCH = "on" }
    tree = "planted"                     # or "released": the installed package, no tree in front
    control = false                      # true: a fault that is made on purpose and must show

    [[case]]                             # a form of the load; each is run in every arm
    name = "shared"
    settings = { form = "shared" }

    [[claim]]
    metric = "models_p99_ms"             # a name or a pattern
    case = "shared"                      # a name or a pattern; all when left out
    arm = "on"
    against = "inline"                   # the ratio of the two medians is what is judged
    at_most = 0.1
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from stackctl.model.errors import StackctlError

TREES = ("planted", "released")
ENGINES = ("frontend", "gpu")


@dataclass(frozen=True)
class Arm:
    """One side of a comparison: a name, and what its server is started with."""

    name: str
    environment: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    tree: str = "planted"
    control: bool = False


@dataclass(frozen=True)
class Case:
    """One form of the load; `arms` limits it to some, `runs` says how often if not as the scenario does."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    runs: int | None = None


@dataclass(frozen=True)
class Claim:
    """What must hold of a metric: in itself (`equals`, `at_most`, `at_least`), or as a ratio to another arm."""

    metric: str
    arm: str
    case: str = "*"
    against: str | None = None
    at_most: float | None = None
    at_least: float | None = None
    equals: float | None = None
    within_spread: bool = False
    tolerance: float = 0.0  # of within_spread: three runs miss three others by chance in one case of ten
    report: bool = False
    floor: float = 0.0
    why: str = ""


@dataclass(frozen=True)
class Scenario:
    """A whole scenario, checked."""

    name: str
    title: str
    load: str
    arms: tuple[Arm, ...]
    cases: tuple[Case, ...]
    claims: tuple[Claim, ...]
    runs: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    engines: tuple[str, ...] = ENGINES
    timeout_s: float = 180.0
    foreign_cpu: float = 0.2
    repeats: int = 2
    same_answers: bool = False
    default: bool = True
    plots: tuple[str, ...] = ()

    def arm(self, name: str) -> Arm:
        """The arm of that name."""
        return next(arm for arm in self.arms if arm.name == name)


_TABLES: dict[str, dict[str, type | tuple[type, ...]]] = {
    "scenario": {
        "title": str, "load": str, "runs": int, "settings": dict, "environment": dict, "flags": list, "engines": list,
        "timeout_s": (int, float), "foreign_cpu": (int, float), "repeats": int, "same_answers": bool, "default": bool,
        "plots": list, "arm": list, "case": list, "claim": list,
    },
    "arm": {"name": str, "environment": dict, "flags": list, "tree": str, "control": bool},
    "case": {"name": str, "settings": dict, "environment": dict, "flags": list, "arms": list, "runs": int},
    "claim": {
        "metric": str, "arm": str, "case": str, "against": str, "at_most": (int, float), "at_least": (int, float),
        "equals": (int, float), "within_spread": bool, "tolerance": (int, float), "report": bool, "floor": (int, float), "why": str,
    },
}  # fmt: skip
_NEEDED = {"scenario": ("title", "load", "arm"), "arm": ("name",), "case": ("name",), "claim": ("metric", "arm")}


def load_scenario(path: Path) -> Scenario:
    """Read one file. Raises StackctlError with everything that is wrong in it."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StackctlError("no such scenario", str(path), _others(path)) from None
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StackctlError(f"cannot be read: {error}", str(path)) from error
    problems = list(_problems(table))
    if problems:
        raise StackctlError("; ".join(problems), str(path))
    return _built(path.stem, table)


def find_scenarios(folder: Path, names: tuple[str, ...]) -> list[Scenario]:
    """The named scenarios, each a name in `folder` or a path; without names all that run by default."""
    if names:
        return [load_scenario(Path(name) if name.endswith(".toml") else folder / f"{name}.toml") for name in names]
    found = [load_scenario(path) for path in sorted(folder.glob("*.toml"))]
    if not found:
        raise StackctlError("no scenarios here", str(folder), "one TOML file each, as in stackctl/smoke/scenario.py")
    return [scenario for scenario in found if scenario.default]


def _others(path: Path) -> str:
    names = sorted(other.stem for other in path.parent.glob("*.toml"))
    near = get_close_matches(path.stem, names, n=1)
    return f"did you mean {near[0]}?" if near else f"there are: {', '.join(names) or 'none'}"


def _problems(table: dict[str, Any]) -> Iterator[str]:
    yield from _shape("scenario", "", table)
    for kind in ("arm", "case", "claim"):
        rows = table.get(kind, [])
        for place, row in enumerate(rows if isinstance(rows, list) else []):
            where = f"{kind} {row.get('name') or place + 1}: " if isinstance(row, dict) else f"{kind} {place + 1}: "
            yield from _shape(kind, where, row)
    yield from _values(table)
    yield from _references(table)


def _shape(kind: str, where: str, row: Any) -> Iterator[str]:
    if not isinstance(row, dict):
        yield f"{where}not a table"
        return
    known = _TABLES[kind]
    for key, value in row.items():
        if key not in known:
            near = get_close_matches(key, known, n=1)
            yield f"{where}unknown key {key!r}" + (f", did you mean {near[0]!r}?" if near else "")
        elif not isinstance(value, known[key]) or (isinstance(value, bool) and known[key] is not bool):
            yield f"{where}{key} has the wrong type"
    for key in _NEEDED[kind]:
        if not row.get(key):
            yield f"{where}{key} is missing"


def _values(table: dict[str, Any]) -> Iterator[str]:
    rows = [table, *_rows(table, "arm"), *_rows(table, "case")]
    for row in rows:
        for name, value in _dictionary(row, "environment").items():
            if not isinstance(value, str):
                yield f"environment {name}: a variable is a string"
        if any(not isinstance(flag, str) for flag in _list(row, "flags")):
            yield "flags are strings"
        if isinstance(row.get("runs"), int) and row["runs"] < 1:
            yield "runs must be at least 1"
    for arm in _rows(table, "arm"):
        if arm.get("tree", TREES[0]) not in TREES:
            yield f"arm {arm.get('name')}: tree is {arm['tree']!r}, not one of {', '.join(TREES)}"
    for engine in _list(table, "engines"):
        if engine not in ENGINES:
            yield f"engine {engine!r} is not one of {', '.join(ENGINES)}"


def _references(table: dict[str, Any]) -> Iterator[str]:
    arms = [arm.get("name") for arm in _rows(table, "arm")]
    for kind in ("arm", "case"):
        names = [row.get("name") for row in _rows(table, kind)]
        yield from (f"{kind} {name!r} is there twice" for name in sorted({n for n in names if n and names.count(n) > 1}))
    for case in _rows(table, "case"):
        yield from (f"case {case.get('name')}: no arm {name!r}" for name in _list(case, "arms") if name not in arms)
    for claim in _rows(table, "claim"):
        yield from _claim_problems(claim, arms)


def _claim_problems(claim: dict[str, Any], arms: list[Any]) -> Iterator[str]:
    where = f"claim on {claim.get('metric')}"
    for key in ("arm", "against"):
        if key in claim and claim[key] not in arms:
            yield f"{where}: no arm {claim[key]!r}"
    limits = [key for key in ("at_most", "at_least", "equals") if key in claim]
    if not limits and not claim.get("within_spread") and not claim.get("report"):
        yield f"{where}: says nothing: at_most, at_least, equals, within_spread or report"
    if claim.get("within_spread") and "against" not in claim:
        yield f"{where}: within_spread needs `against`"


def _rows(table: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return [row for row in _list(table, key) if isinstance(row, dict)]


def _list(table: dict[str, Any], key: str) -> list[Any]:
    value = table.get(key, [])
    return value if isinstance(value, list) else []


def _dictionary(table: dict[str, Any], key: str) -> dict[str, Any]:
    value = table.get(key, {})
    return value if isinstance(value, dict) else {}


def _built(name: str, table: dict[str, Any]) -> Scenario:
    fields = {key: value for key, value in table.items() if key not in ("arm", "case", "claim")}
    return Scenario(
        name=name,
        arms=tuple(Arm(**_frozen(row)) for row in table["arm"]),
        cases=tuple(Case(**_frozen(row)) for row in table.get("case", [{"name": "all"}])),
        claims=tuple(Claim(**row) for row in table.get("claim", [])),
        **_frozen(fields),
    )


def _frozen(row: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
