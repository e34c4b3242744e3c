"""A stack of 300 entries and 3,000 plants of every kind, made from a real release and planted on it.

Each half is placed by its own kind on stock upstream and judged there: lost before, intact after. So the
planted tree is one that `apply` could have made, and stock upstream has none of it.
"""

from __future__ import annotations

import ast
import difflib
import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stackctl.carry.transaction import Step, state_folder, write_commits
from stackctl.model.stack import Disposition, Entry, Plant, Stack
from stackctl.model.verdict import Verdict
from stackctl.plants.calls import call_nodes, dotted
from stackctl.plants.errors import Unplantable
from stackctl.plants.judging import raw_judgement
from stackctl.plants.module import Module, suites
from stackctl.plants.view import View
from stackctl.trees.git import Repository
from stackctl.trees.release import release_of
from stackctl.trees.tree import GitTree

PER_ENTRY = 10
_SOURCE = "python"
_SHORT = 80  # an anchor longer than this would be more text than anyone declares

crashes: list[tuple[Plant, Exception]] = []  # halves that a kind could not place without a traceback

# How often each kind is tried first: about what a fork's ports are made of.
_TURNS = ("definition",) * 5 + ("import",) * 4 + ("statement",) * 5 + ("argument",) * 4 + ("reroute",) * 4 + (
    "property", "rename", "rename", "tombstone", "text", "file",
)  # fmt: skip


@dataclass
class Generated:
    """What was made: the stack's folder, the planted branch, how many plants of each kind in how many files."""

    root: Path
    branch: str
    kinds: Counter[str] = field(default_factory=Counter)
    files: int = 0
    size: int = 0  # characters of Python source that hold a plant


@dataclass(frozen=True)
class _Place:
    """One module to plant in, and a number that no other plant has."""

    name: str
    path: str
    module: Module
    number: int


def generate(repository: Repository, base: str, folder: Path, entries: int = 300, files: int = 1500) -> Generated:
    """Write a stack below `folder` and plant it on `base`, as one commit on the branch `planted`."""
    tree = GitTree(repository, base)
    found = release_of(tree)
    stack = Stack("generated", folder, (), source=_SOURCE)
    view = View(tree, stack, found, View(tree, stack, found))
    made = Generated(folder, "planted")
    wanted = entries * PER_ENTRY
    plants = [*_hunks(view, folder, wanted // 50), *_python_plants(view, folder, wanted - wanted // 50, files, made)]
    random.Random(201).shuffle(plants)
    _write_stack(folder, plants)
    made.kinds.update(plant.kind for plant in plants)
    made.files = len(view.changes)
    state_folder(repository).mkdir(exist_ok=True)
    tip = write_commits(repository, tree.commit, tree, [Step("Plant the generated stack", view.changes)])
    repository.run("update-ref", f"refs/heads/{made.branch}", tip)
    return made


def _python_plants(view: View, folder: Path, wanted: int, files: int, made: Generated) -> list[Plant]:
    """The same number of plants in each of `files` modules spread over the whole tree, until there are enough."""
    paths = [path for path in view.tree.paths() if path.startswith(f"{_SOURCE}/sglang/") and path.endswith(".py")]
    step = max(1, len(paths) // files)
    order = [path for start in range(step) for path in paths[start::step]]
    each = -(-wanted // files)
    turns, numbers = itertools.cycle(_TURNS), itertools.count(1)
    plants: list[Plant] = []
    for path in order:
        if len(plants) >= wanted:
            break
        here = list(itertools.islice(_plants_in(view, folder, path, turns, numbers), min(each, wanted - len(plants))))
        held = [plant for plant in here if plant.kind == "file" or _judged(view, plant, folder) is Verdict.INTACT]
        made.size += len(view.module(path).source.text) if held else 0
        plants += held
    return plants


def _plants_in(view: View, folder: Path, path: str, turns: Iterator[str], numbers: Iterator[int]) -> Iterator[Plant]:
    """Plants that could be placed in one file; each is in the view when it is handed out."""
    name = path.removeprefix(f"{_SOURCE}/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    for kind in itertools.islice(turns, 8):
        try:
            place = _Place(name, path, view.module(path), next(numbers))
        except Unplantable:
            return
        if len(place.module.tree.body) < 3:
            return
        plant = _MAKERS[kind](place, folder)
        if plant is not None and _placed(view, plant, folder):
            yield plant


def _judged(view: View, plant: Plant, folder: Path) -> Verdict:
    return raw_judgement(_entry(folder), plant, view).verdict


def _entry(folder: Path) -> Entry:
    return Entry(1, "made", "made", _entry_folder(folder), Disposition.PERMANENT)


def _placed(view: View, plant: Plant, folder: Path) -> bool:
    """Whether the plant was missing and is there now."""
    from stackctl.plants.manifest import kind_of

    entry = _entry(folder)
    if raw_judgement(entry, plant, view).verdict not in (Verdict.LOST, Verdict.RESURRECTED):
        return plant.kind == "tombstone" and "text" in plant.options
    before = view.snapshot()
    try:
        kind_of(plant, entry).plant(plant, entry, view)
    except Unplantable:
        view.restore(before)
        return False
    except Exception as error:  # a kind that crashes on real code: kept, since that is worth more than a benchmark
        crashes.append((plant, error))
        view.restore(before)
        return False
    if raw_judgement(entry, plant, view).verdict is Verdict.INTACT:
        return True
    view.restore(before)
    return False


def _entry_folder(folder: Path) -> Path:
    """Where files lie until their plants are dealt out to entries."""
    return folder / "entries" / "001-made"


def _functions(place: _Place) -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    found = [(name, nodes[0]) for name, nodes in place.module.hosts.items() if len(nodes) == 1]
    chosen = [(name, node) for name, node in found if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    random.Random(place.number).shuffle(chosen)
    return chosen


def _classes(place: _Place) -> list[tuple[str, ast.ClassDef]]:
    found = [(name, nodes[0]) for name, nodes in place.module.hosts.items() if len(nodes) == 1]
    return [(name, node) for name, node in found if isinstance(node, ast.ClassDef)]


def _plant(place: _Place, kind: str, symbol: str, **options: Any) -> Plant:
    return Plant(f"{kind}-{place.number}", kind, f"{place.name}:{symbol}", options=options)


def _definition(place: _Place, folder: Path) -> Plant:
    name = f"fork_step_{place.number}"
    for symbol, node in _classes(place):
        methods = [inner.name for inner in node.body if isinstance(inner, ast.FunctionDef)]
        single = [method for method in methods if methods.count(method) == 1]
        if single:
            code = f'def {name}(self, batch, *, size={place.number}):\n    """Ours."""\n    return [self.fork_one(item) for item in batch[:size]]\n'
            return _plant(place, "definition", symbol, code=code, after=single[-1])
    code = f'def {name}(batch, size={place.number}):\n    """Ours."""\n    # a slice, since the last one may be short\n    return batch[:size]\n'
    return _plant(place, "definition", "", code=code)


def _import(place: _Place, folder: Path) -> Plant:
    return _plant(place, "import", "", code=f"from sglang.fork.ports import port_{place.number}")


def _anchors(node: ast.AST) -> list[str]:
    """Simple statements of a function that stand in it once and in a suite with others."""
    found = [
        (ast.unparse(each), suite)
        for suite in suites(node)
        for each in suite
        if isinstance(each, ast.Assign | ast.Expr | ast.AugAssign)
    ]
    counts = Counter(text for text, _ in found)
    return [
        text
        for text, suite in found
        if counts[text] == 1
        and len(suite) > 1
        and len(text) < _SHORT
        and "\n" not in text
        and not text.startswith(("'", '"'))
    ]


def _statement(place: _Place, folder: Path) -> Plant | None:
    for symbol, node in _functions(place):
        if anchors := _anchors(node):
            side = "after" if place.number % 4 else "before"
            code = f"fork_mark_{place.number} = len(locals())"
            return _plant(place, "statement", symbol, code=code, **{side: anchors[place.number % len(anchors)]})
    return None


def _tombstone(place: _Place, folder: Path) -> Plant | None:
    for symbol, node in _functions(place):
        if anchors := _anchors(node):
            return _plant(place, "tombstone", symbol, code=anchors[place.number % len(anchors)])
    return None


def _text(place: _Place, folder: Path) -> Plant:
    options = {"text": f"fork_hop_{place.number}(None, self.f"}
    # A few watch the whole source folder, as a tombstone without `paths` does.
    paths = {} if place.number % 900 < 30 else {"paths": [place.path]}
    return Plant(f"text-{place.number}", "tombstone", options=options | paths)


def _calls(node: ast.AST) -> list[tuple[str, ast.Call]]:
    """Calls whose callee is called once in a function, with positional arguments alone."""
    found = [(dotted(call.func), call) for call, inside in call_nodes(node) if not inside]
    counts = Counter(name for name, _ in found)
    return [
        (name, call)
        for name, call in found
        if counts[name] == 1 and call.args and len(name) < 40 and name.replace(".", "").isidentifier()
    ]


def _argument(place: _Place, folder: Path) -> Plant | None:
    for symbol, node in _functions(place):
        for name, _ in _calls(node)[:3]:
            if place.number % 2:
                return _plant(place, "argument", symbol, call=name, keyword=f"fork_{place.number}", value="True")
            return _plant(place, "argument", symbol, call=name, position=0, value=f"fork_own_{place.number}({{value}})")
    return None


def _reroute(place: _Place, folder: Path) -> Plant | None:
    for symbol, node in _functions(place):
        if not isinstance(node, ast.AsyncFunctionDef):
            continue
        for name, _ in _calls(node):
            return _plant(place, "reroute", symbol, call=name, through="self._fork_preprocess")
    return None


def _property(place: _Place, folder: Path) -> Plant | None:
    for symbol, node in _classes(place):
        if any(isinstance(inner, ast.FunctionDef) for inner in node.body):
            name = f"fork_state_{place.number}"
            return _plant(
                place,
                "property",
                symbol,
                name=name,
                getter=f"self._{name} + 1",
                setter=f"self._{name} = value",
                doc="Ours.",
            )
    return None


def _rename(place: _Place, folder: Path) -> Plant | None:
    for symbol, node in _functions(place):
        stored = [
            inner.id
            for inner in ast.walk(node)
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store) and len(inner.id) > 4
        ]
        if stored:
            return _plant(place, "rename", symbol, old=stored[0], new=f"{stored[0]}_fork{place.number}")
    return None


def _file(place: _Place, folder: Path) -> Plant:
    path = f"{_SOURCE}/sglang/fork/port_{place.number}.py"
    source = _entry_folder(folder) / "files" / path
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(
        f'"""Port {place.number}."""\n\n' + "".join(f"VALUE_{line} = {line * place.number}\n" for line in range(60))
    )
    return Plant(f"file-{place.number}", "file", options={"path": path})


_MAKERS: dict[str, Callable[[_Place, Path], Plant | None]] = {
    "definition": _definition, "import": _import, "statement": _statement, "argument": _argument, "reroute": _reroute,
    "property": _property, "rename": _rename, "tombstone": _tombstone, "text": _text, "file": _file,
}  # fmt: skip


def _hunks(view: View, folder: Path, wanted: int) -> list[Plant]:
    """Text patches of files that are not Python; new files where there are too few of those."""
    plants: list[Plant] = []
    for path in view.tree.paths():
        if len(plants) == wanted:
            break
        if path.endswith((".md", ".json", ".toml", ".cuh", ".h", ".cu", ".jinja")) and (
            plant := _hunk(view, folder, path, len(plants))
        ):
            plants.append(plant)
    for number in range(len(plants), wanted):
        path = f"docs/fork/port_{number}.md"
        plants.append(
            _patched(view, folder, number, f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,2 @@\n+# Port {number}\n+Ours.\n")
        )
    return [plant for plant in plants if _placed(view, plant, folder)]


def _hunk(view: View, folder: Path, path: str, number: int) -> Plant | None:
    data = view.read(path)
    if not 400 < len(data) < 40_000 or not data.isascii():
        return None
    old = data.decode().split("\n")
    middle = len(old) // 2
    new = [*old[:middle], f"// fork {number}", *old[middle:]]
    diff = difflib.unified_diff(old, new, f"a/{path}", f"b/{path}", lineterm="")
    return (
        _patched(view, folder, number, "\n".join(diff) + "\n")
        if data.count("\n".join(old[middle - 3 : middle + 3]).encode()) == 1
        else None
    )


def _patched(view: View, folder: Path, number: int, text: str) -> Plant:
    name = f"fork-{number}.patch"
    (folder / "patches").mkdir(parents=True, exist_ok=True)
    (folder / "patches" / name).write_text(text)
    return Plant(f"hunk-{number}", "hunk", options={"patch": name})


def _write_stack(folder: Path, plants: list[Plant]) -> None:
    (folder / "stack.toml").write_text('name = "generated"\nupstream = "sgl-project/sglang"\nsource = "python"\n')
    made = _entry_folder(folder)
    for number, group in enumerate(
        itertools.batched(plants, PER_ENTRY) if hasattr(itertools, "batched") else _batches(plants), 1
    ):
        entry = folder / "entries" / f"{number + 100}-port-{number}"
        entry.mkdir(parents=True)
        (entry / "entry.toml").write_text(_manifest(number + 100, group))
        for plant in group:
            if plant.kind == "file":
                target = entry / "files" / plant.options["path"]
                target.parent.mkdir(parents=True, exist_ok=True)
                (made / "files" / plant.options["path"]).rename(target)
    for path in sorted(made.rglob("*"), reverse=True) if made.is_dir() else []:
        path.unlink() if path.is_file() else path.rmdir()
    if made.is_dir():
        made.rmdir()


def _batches(plants: list[Plant]) -> Iterator[tuple[Plant, ...]]:
    for start in range(0, len(plants), PER_ENTRY):
        yield tuple(plants[start : start + PER_ENTRY])


def _manifest(number: int, plants: tuple[Plant, ...]) -> str:
    """An entry's manifest with the notes that a real one has."""
    head = {
        "number": number, "title": f"Port {number} of the generated fork", "upstream": [f"sgl-project/sglang#{30_000 + number}"],
        "disposition": "carry", "reason": "made for the benchmark", "remove_when": "the benchmark is gone", "default": "on",
        "watch": ["p99 of /v1/models under long prompts: above 50 ms the loop is not free"],
    }  # fmt: skip
    notes = "\n".join(
        f"Port note {line}: what was decided, by whom, and what upstream said about it in the review."
        for line in range(12)
    )
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in head.items()) + f'notes = """\n{notes}\n"""\n'
    return text + "".join(_table(plant) for plant in plants)


def _table(plant: Plant) -> str:
    keys = {"id": plant.id, "kind": plant.kind} | ({"host": plant.host} if plant.host else {}) | dict(plant.options)
    return "\n[[plant]]\n" + "".join(
        f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in keys.items()
    )
