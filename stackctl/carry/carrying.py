"""Carry an imported series onto another release: one result for each of its entries, each half with a verdict."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from packaging.version import InvalidVersion, Version

from stackctl.carry.deciding import Decisions, deleted
from stackctl.carry.following import Follower
from stackctl.carry.fork import Fork, Layer, State, build_fork
from stackctl.carry.kept import Kept
from stackctl.carry.merge3 import (
    ADOPTED,
    AGREED,
    CARRIED,
    COMMENT,
    DROPPED,
    LEFT_OUT,
    LOOK,
    PROPOSAL,
    Half,
    by_lines,
    text_halves,
)
from stackctl.carry.porting import Ported, port
from stackctl.carry.proposing import PLANT, Elsewhere, Proposal, Similar
from stackctl.carry.texts import Text, line_hunks
from stackctl.carry.world import World
from stackctl.model.stack import Disposition, Entry, Plant, Stack
from stackctl.model.verdict import Verdict
from stackctl.plants.errors import Unplantable
from stackctl.plants.kind import Judgement
from stackctl.plants.view import View
from stackctl.trees.git import Repository
from stackctl.trees.source import Source, SourceError
from stackctl.trees.tree import GitTree

PARTIAL = "what stands of it is whole; "  # how evidence begins where the rest waits for a person
IDLE = (Disposition.CANDIDATE, Disposition.BLOCKED, Disposition.SUPERSEDED, Disposition.RETIRED)
_KEPT = 3
_LINK = "120000"  # Git's mode of a symbolic link
_carriers: dict[tuple[object, ...], Carrier] = {}


def carrier_of(base: str, view: View) -> Carrier | None:
    """What carries the stack's series of one base onto the view's release; None where the base cannot be read."""
    stock = view.stock.tree if view.stock else None
    if not isinstance(stock, GitTree):
        return None
    # A tree is pinned to its commit and lives for one run: what was found for it need not be looked up again.
    known: dict[tuple[str, int], tuple[Stack, Carrier | None]] = stock.__dict__.setdefault("_carriers", {})
    key = base, id(view.stack)
    if key not in known:
        known[key] = view.stack, _carrier(base, view.stack, stock)
    return known[key][1]


def _carrier(base: str, stack: Stack, stock: GitTree) -> Carrier | None:
    if not stock.repository.exists(base):
        return None
    entries = series_entries(stack, base)
    path, commit = str(stock.repository.path), stock.repository.resolve(base)
    key = (path, commit, stock.commit, tuple((e.number, e.digest) for e in entries))
    if key not in _carriers:
        while len(_carriers) >= _KEPT:
            _carriers.pop(next(iter(_carriers)))
        _carriers[key] = Carrier(stock.repository, base, stock, entries, stack)
    return _carriers[key]


def save_carriers() -> None:
    """Keep what was composed for the next run."""
    for carrier in _carriers.values():
        carrier.kept.save()


def series_plant(entry: Entry) -> Plant | None:
    """The plant of an entry that is a patch of a series."""
    return next((plant for plant in entry.plants if plant.kind == "series" and "base" in plant.options), None)


def series_entries(stack: Stack, base: str) -> list[Entry]:
    """The entries that are patches on one base and that are carried, in order."""
    return [
        e for e in stack.entries if e.disposition not in IDLE and (p := series_plant(e)) and p.options["base"] == base
    ]


def layer_of(entry: Entry) -> Layer:
    """An entry's patch as a layer of the fork."""
    plant = series_plant(entry)
    assert plant is not None
    name = plant.options["patch"]
    data = (entry.folder.parent.parent / "patches" / name).read_bytes()
    return Layer(entry.number, name, data, plant.options.get("strip", 1), tuple(plant.options.get("leave_out", ())))


@dataclass(frozen=True)
class Result:
    """What the series comes to after one entry: files that differ from upstream's, and every half."""

    files: Mapping[str, State | None]
    halves: tuple[Half, ...]


@dataclass
class Carrier:
    """One series, its base, and the release that it is carried to."""

    repository: Repository
    base_name: str
    theirs: GitTree
    entries: Sequence[Entry]
    stack: Stack
    _files: dict[tuple[str, str, bool], tuple[dict[str, State | None], tuple[Half, ...]]] = field(default_factory=dict)
    _results: dict[tuple[int, bool], Result] = field(default_factory=dict)
    _stocks: dict[str, State | None] = field(default_factory=dict)
    _changes: dict[int, list[str]] = field(default_factory=dict)
    _halves_of: dict[int, list[Half]] = field(default_factory=dict)

    @cached_property
    def base(self) -> GitTree:
        """The release that the series stands on."""
        return GitTree(self.repository, self.base_name)

    @cached_property
    def kept(self) -> Kept:
        """What was composed before for the same series and releases."""
        return Kept([self.base.commit, self.theirs.commit, [(entry.number, entry.digest) for entry in self.entries]])

    @cached_property
    def fork(self) -> Fork:
        """The series on its base."""
        return build_fork(self.repository, self.base_name, [layer_of(entry) for entry in self.entries])

    @cached_property
    def renames(self) -> dict[str, str]:
        """Upstream's renamed files, old path to new."""
        if self.base.commit == self.theirs.commit:
            return {}
        output = self.repository.run(
            "diff-tree",
            "-r",
            "-z",
            "-M",
            "-l20000",
            "--diff-filter=R",
            "--name-status",
            self.base.commit,
            self.theirs.commit,
        )
        fields = output.split(b"\0")
        return {
            os.fsdecode(old): os.fsdecode(new)
            for _, old, new in zip(fields[::3], fields[1::3], fields[2::3], strict=False)
        }

    @cached_property
    def world(self) -> World:
        """Upstream's new tree, with the files that only the fork has, as modules."""
        moved = {
            self._module(old): self._module(new)
            for old, new in self.renames.items()
            if old.endswith(".py") and new.endswith(".py")
        }
        prefix = f"{self.stack.source}/"
        tops = frozenset(
            path[len(prefix) :].split("/")[0]
            for path in self.theirs.paths()
            if path.startswith(prefix) and "/" in path[len(prefix) :]
        )
        gone = {old: new for old, new in moved.items() if old and new and self._read_module(old) is None}
        return World(gone, self._read_module, self._had_module, tops)

    @cached_property
    def follower(self) -> Follower:
        """Finds what upstream moved to another file."""
        return Follower(self.repository, self.base, self.theirs, self.kept, self.world)

    def _module(self, path: str) -> str:
        prefix = f"{self.stack.source}/"
        if not path.startswith(prefix) or not path.endswith(".py"):
            return ""
        return path[len(prefix) : -3].removesuffix("/__init__").replace("/", ".")

    def _read_module(self, module: str) -> bytes | None:
        """A module's bytes in the result: upstream's, ours if only the fork has it, or both joined."""
        return self._module_in(self.theirs, module)

    def _had_module(self, module: str) -> bytes | None:
        return self._module_in(self.base, module)

    def _module_in(self, tree: GitTree, module: str) -> bytes | None:
        stem, added = f"{self.stack.source}/{module.replace('.', '/')}", self._added_files
        for path in (f"{stem}.py", f"{stem}/__init__.py"):
            state = added.get(path)
            if path in tree:
                return tree.read(path) + (b"\n" + state.data if state else b"")
            if state and path not in self.base:
                return state.data
        return None

    @cached_property
    def _added_files(self) -> dict[str, State | None]:
        return self.fork.after(max(self.fork.changes, default=0))

    # Results.

    def after(self, number: int) -> Result:
        """Upstream's tree with the series up to one entry; number 0: nothing of it."""
        return self._result(number, self.decisions.any)

    def undecided(self) -> Result:
        """The whole series on upstream's tree, as it is where a person decided nothing."""
        return self._result(self.last, False)

    def _result(self, number: int, decided: bool) -> Result:
        if (number, decided) not in self._results:
            self._results[number, decided] = self._composed(number, decided)
        return self._results[number, decided]

    def _composed(self, number: int, decided: bool) -> Result:
        files: dict[str, State | None] = {}
        halves: list[Half] = []
        for path, state in (self.fork.after(number) if number else {}).items():
            made, rows = self._file(path, state, decided)
            files |= made
            halves += rows
        halves = self.follower.follow(halves, files, self.fork.after(number) if number else {})
        if decided:
            halves = [self._agreed_port(half, files) for half in halves]
        return Result(dict(sorted(files.items())), tuple(halves))

    def port(self, path: str, half: Half, similar: Similar) -> Proposal | None:
        """The proposal to port a half of a file to upstream's similar code in another file, if it is one that can be."""
        made = self._ported(replace(half, path=path), similar.path, similar.host, self.theirs.read(similar.path))
        if made is None:
            return None
        old = Source.decode(self.theirs.read(similar.path)).text
        return Proposal(half.unit, PLANT, made.how, made.difference(similar.path, old), path=similar.path, host=similar.host)

    def _ported(self, half: Half, path: str, host: str, data: bytes) -> Ported | None:
        old = next((o for o in self._fork_files if self._target(o) == half.path), half.path)
        state = self._fork_files.get(old)
        if state is None or old not in self.base:
            return None
        try:
            base, ours, target = (Text(Source.decode(each).text) for each in (self.base.read(old), state.data, data))
            return port(base, ours, half, target, host, self.world)
        except SourceError:
            return None

    def _agreed_port(self, half: Half, files: dict[str, State | None]) -> Half:
        """A half that a person agreed to port, made in the other file; any other as it is."""
        asked = self.decisions.ported(half)
        if asked is None:
            return half
        now = files.get(asked.path) or State(self.theirs.mode(asked.path), self.theirs.read(asked.path))
        made = self._ported(half, asked.path, asked.host, now.data)
        if made is None:
            return half
        files[asked.path] = State(now.mode, Source.decode(now.data).encode(made.text))
        return replace(half, state=CARRIED, path=asked.path, host=asked.host, how=f"{AGREED}{made.how}", evidence="", unit=0)

    @property
    def last(self) -> int:
        """The number of the series' last entry."""
        return max((entry.number for entry in self.entries), default=0)

    def before(self, number: int) -> int:
        """The number of the entry before one, 0 if it is the first."""
        return max((entry.number for entry in self.entries if entry.number < number), default=0)

    def _file(
        self, path: str, state: State | None, decided: bool
    ) -> tuple[dict[str, State | None], tuple[Half, ...]]:
        key = (path, "" if state is None else f"{state.mode}{hash(state.data)}", decided)
        if key not in self._files:
            target = self._target(path)
            agreed = self.decisions.agreed(target) if decided else frozenset()
            files, halves = self._merged(path, target, state, agreed)
            self._files[key] = files, tuple(replace(half, path=half.path or target) for half in halves)
        return self._files[key]

    def _target(self, path: str) -> str:
        """Where upstream has a file of the base by now."""
        return path if path in self.theirs else self.renames.get(path, path)

    def _merged(
        self, path: str, target: str, state: State | None, agreed: frozenset[tuple[str, str]]
    ) -> tuple[dict[str, State | None], tuple[Half, ...]]:
        """One file of the fork on upstream's tree."""
        old = self.base.read(path) if path in self.base else None
        new = self.theirs.read(target) if target in self.theirs else None
        if state is None:
            return self._removed(target, old, new)
        if old is None:
            return self._added(target, state, new)
        if new is None:
            why = f"upstream no longer has {path}{self.follower.similar_file(path)}"
            return {}, tuple(replace(half, unit=1) for half in _halves(old, state.data, LEFT_OUT, why))
        mode = state.mode if state.mode != self.base.mode(path) else self.theirs.mode(target)
        moded = (Half(CARRIED, (0, 0), (0, 0), text=f"mode {mode}", exact=True),) if state.mode != self.base.mode(path) else ()
        if new == old:
            data, halves = self._rewritten(old, state.data), _halves(old, state.data, CARRIED, "") + moded
            return {target: State(mode, data)}, halves
        text, halves = self._text(target, old, state.data, new, agreed)
        halves += moded
        return ({} if text == new and mode == self.theirs.mode(target) else {target: State(mode, text)}), halves

    def _removed(
        self, target: str, old: bytes | None, new: bytes | None
    ) -> tuple[dict[str, State | None], tuple[Half, ...]]:
        half = Half(CARRIED, (0, 0), (0, 0), text="the file is removed", how="three-way merge", exact=True)
        if new is None:
            return {}, (replace(half, state=ADOPTED, evidence="upstream removed it too"),)
        if new != old:
            return {}, (replace(half, state=PROPOSAL, unit=1, evidence="ours removes the file, upstream edited it"),)
        return {target: None}, (half,)

    def _added(self, target: str, state: State, new: bytes | None) -> tuple[dict[str, State | None], tuple[Half, ...]]:
        half = Half(CARRIED, (0, 0), (0, 0), text="a new file", how="three-way merge", exact=True)
        if new is None:
            return {target: State(state.mode, self._rewritten(b"", state.data))}, (half,)
        if new == state.data:
            return {}, (replace(half, state=ADOPTED, evidence="upstream has the same file"),)
        return {}, (replace(half, state=PROPOSAL, unit=1, evidence="upstream has another file of this name"),)

    def _rewritten(self, old: bytes, data: bytes) -> bytes:
        """Our text with the imports of modules that upstream moved changed, on the lines that are ours."""
        if self.base.commit == self.theirs.commit or not self.world.moved or b"import" not in data:
            return data
        try:
            before, after = (Source.decode(each) for each in (old, data))
        except SourceError:
            return data
        hunks = line_hunks(before.text.splitlines(keepends=True), after.text.splitlines(keepends=True))
        rows = [row for hunk in hunks for row in range(hunk.first, hunk.last)]
        text = self.world.rewritten(after.text, rows)
        return data if text == after.text else after.encode(text)

    def _text(
        self, target: str, old: bytes, ours: bytes, new: bytes, agreed: frozenset[tuple[str, str]]
    ) -> tuple[bytes, tuple[Half, ...]]:
        try:
            sources = [Source.decode(each) for each in (old, self._rewritten(old, ours), new)]
        except SourceError:
            texts = [each.decode("latin-1") for each in (old, ours, new)]
            made = by_lines(*texts)
            return made.text.encode("latin-1"), made.halves
        texts = [source.text for source in sources]
        made = self.kept.compose(texts, self.world, agreed) if target.endswith((".py", ".pyi")) else by_lines(*texts)
        return sources[2].encode(made.text), made.halves

    # What a person is asked.

    @cached_property
    def decisions(self) -> Decisions:
        """What waits for a person, and what was decided."""
        return Decisions(self)

    @property
    def plants(self) -> list[Plant]:
        """The plants that the series is made of."""
        return [plant for entry in self.entries if (plant := series_plant(entry))]

    @cached_property
    def releases_between(self) -> list[tuple[str, GitTree]]:
        """The tagged releases after the base, up to the new one, oldest first."""
        tags = [tag for tag in self.repository.text("tag", "--list", "v[0-9]*").split() if _version(tag)]
        trees = [(tag, GitTree(self.repository, tag)) for tag in sorted(tags, key=_version)]
        commits = [tree.commit for _, tree in trees]
        first = commits.index(self.base.commit) + 1 if self.base.commit in commits else 0
        last = commits.index(self.theirs.commit) + 1 if self.theirs.commit in commits else len(trees)
        return trees[first:last]

    def propose(self, path: str, halves: Sequence[Half], elsewhere: Elsewhere) -> Sequence[Proposal]:
        """The proposals for the units of one file that wait."""
        old = next((o for o in self._fork_files if self._target(o) == path), path)
        state = self._fork_files.get(old)
        if path not in self.theirs and old in self.base:
            return deleted(self, path, halves)
        if state is None or old not in self.base or not path.endswith((".py", ".pyi")):
            return ()
        try:
            data = self.base.read(old), self._rewritten(self.base.read(old), state.data), self.theirs.read(path)
            texts = [Source.decode(each).text for each in data]
        except SourceError:
            return ()
        made = self.kept.compose(texts, self.world)
        return self.kept.proposals(texts, made, self.world, elsewhere)

    @property
    def _fork_files(self) -> dict[str, State | None]:
        return self.fork.after(self.last)

    def sides(self, path: str) -> tuple[list[str], list[str]]:
        """The lines of a file, named as upstream has it now, in the base and in the fork."""
        old = next((o for o in self._fork_files if self._target(o) == path), path)
        state = self._fork_files.get(old)
        datas = self.base.read(old) if old in self.base else b"", state.data if state else b""
        base, ours = (data.decode("utf-8", "replace").splitlines(keepends=True) for data in datas)
        return base, ours

    def base_code(self, path: str, half: Half) -> str:
        """The lines of the base and of ours that a half is about, and some around them."""
        base, ours = self.sides(path)
        first, last = half.base_rows
        return "".join([*base[max(first - 5, 0) : last + 5], *ours[slice(*half.rows)]])

    # What a plant asks.

    def judge(self, plant: Plant, entry: Entry, view: View) -> Judgement:
        """What became of one entry in a view: its own difference between two results must be there."""
        view.seen["*"] = None  # a verdict hangs on the whole series: it is not kept
        number = entry.number
        if reason := self.fork.failed.get(number):
            return Judgement(Verdict.UNDECIDED, f"{plant.options['patch']}: {reason}")
        if number not in self.fork.changes:
            return Judgement(Verdict.NOT_DUE, "the entry is not carried")
        now, was, last = self.after(number), self.after(self.before(number)), self.after(self.last)
        for path in self.changed(number):
            found = _missing(
                view,
                path,
                was.files.get(path, self.stock(path)),
                now.files.get(path, self.stock(path)),
                last.files.get(path, self.stock(path)),
            )
            if found is not None and not self._is_by_hand(number, path, view):
                return Judgement(Verdict.LOST, found[1], path, found[0])
        for path, mode in self.new_modes(number).items():
            state = last.files.get(path, self.stock(path))
            if view.exists(path) and view.mode(path) not in (mode, state.mode if state else mode):
                return Judgement(Verdict.LOST, f"{path} has mode {view.mode(path)}, not {mode}", path, 1)
        return self._whole(number)

    def _whole(self, number: int) -> Judgement:
        halves = self.halves(number)
        left = [half for half in halves if not half.settled and half.state != COMMENT]
        first = left[0] if left else halves[0] if halves else None
        path, line = (first.path, first.rows[0] + 1) if first else ("", 0)
        if left:
            stands = any(half.state == CARRIED for half in halves)
            message = f"{len(left)} of {len(halves)} halves wait for a person: {left[0].evidence}"
            return Judgement(
                Verdict.UNDECIDED, message, path, line, left[0].host, f"{PARTIAL if stands else ''}{left[0].text}"
            )
        if halves and all(half.state == ADOPTED for half in halves):
            return Judgement(Verdict.ADOPTED, "upstream has it", path, line, evidence=halves[0].evidence)
        return Judgement(Verdict.INTACT, path=path, line=line)

    def stock(self, path: str) -> State | None:
        """A file of the new release, None if it has none of that path."""
        if path not in self._stocks:
            here = path in self.theirs
            self._stocks[path] = State(self.theirs.mode(path), self.theirs.read(path)) if here else None
        return self._stocks[path]

    def changed(self, number: int) -> list[str]:
        """The paths that differ between the results before and after an entry."""
        if number not in self._changes:
            self._changes[number] = self._differing(number)
        return self._changes[number]

    def _differing(self, number: int) -> list[str]:
        now, was = self.after(number).files, self.after(self.before(number)).files
        return sorted(
            path
            for path in now.keys() | was.keys()
            if now.get(path, self.stock(path)) != was.get(path, self.stock(path))
        )

    def plant(self, plant: Plant, entry: Entry, view: View) -> None:
        """Bring one entry's difference into a view, by the same merge where something else changed the file."""
        del plant
        if reason := self.fork.failed.get(entry.number):
            raise Unplantable(Verdict.UNDECIDED, reason)
        now, was = self.after(entry.number).files, self.after(self.before(entry.number)).files
        for path in self.changed(entry.number):
            old, new = was.get(path, self.stock(path)), now.get(path, self.stock(path))
            here = _here(view, path)
            if here == (old.data if old else None):
                view.write(path, new.data if new else None)
            elif here is not None and here == self._undecided_data(path):  # ours, from before a person agreed to more
                last = self.after(self.last).files.get(path, self.stock(path))
                view.write(path, last.data if last else None)
            elif here != (new.data if new else None):
                view.write(path, _laid_on(path, old, new, here))
        view.modes |= self.new_modes(entry.number)

    def _undecided_data(self, path: str) -> bytes | None:
        """A file as the whole series makes it where a person decided nothing."""
        state = self.undecided().files.get(path) if self.decisions.any else None
        return state.data if state else None

    def modes(self, number: int) -> dict[str, str]:
        """The Git modes of the files that an entry writes."""
        return {path: state.mode for path in self.changed(number) if (state := self.after(number).files.get(path))}

    def new_modes(self, number: int) -> dict[str, str]:
        """The modes that an entry gives to files that are there before it."""
        now, was = self.after(number).files, self.after(self.before(number)).files
        pairs = {path: (was.get(path, self.stock(path)), now.get(path, self.stock(path))) for path in self.changed(number)}
        return {path: new.mode for path, (old, new) in pairs.items() if old and new and old.mode != new.mode}

    def halves(self, number: int) -> list[Half]:
        """The halves that an entry brought, as they stand when the whole series is in."""
        if number not in self._halves_of:
            self._halves_of[number] = self._brought(number)
        return self._halves_of[number]

    def _brought(self, number: int) -> list[Half]:
        known = Counter(map(_name, self.after(self.before(number)).halves))
        final = {_name(half): half for half in self.after(self.last).halves}
        stuck = {(half.path, half.host) for half in final.values() if not half.settled}
        found = []
        for half in self.after(number).halves:
            name = _name(half)
            if known[name]:
                known[name] -= 1
            else:
                if (
                    name not in final
                    and not half.settled
                    and half.path in self.after(self.last).files
                    and (half.path, half.host) not in stuck
                ):
                    half = replace(
                        half,
                        state=CARRIED,
                        how="carried with a later entry's edit of the same lines",
                        evidence="",
                        unit=0,
                    )
                found.append(self.decisions.decided(final.get(name, half)))
        return found

    def by_hand(self, number: int, half: Half, view: View) -> Half:
        """A half that waits, as carried if a person has put its lines into the file meanwhile."""
        if half.settled or half.state == COMMENT or not self._put_in(number, half, view):
            return half
        return replace(half, state=CARRIED, how="put in by hand", evidence="")

    def _put_in(self, number: int, half: Half, view: View) -> bool:
        """Whether a half's lines, as the fork has them, are in a view's file and not in upstream's."""
        old = {new: old for old, new in self.renames.items()}.get(half.path, half.path)
        state = self.fork.after(number).get(old)
        if state is None or half.path not in self.theirs or not view.exists(half.path):
            return False
        lines = Counter(line.strip() for line in state.data.split(b"\n")[slice(*half.rows)] if line.strip())
        missing = lines - (_lines(view.read(half.path)) - _lines(self.theirs.read(half.path)))
        return bool(lines) and not missing

    def _is_by_hand(self, number: int, path: str, view: View) -> bool:
        """Whether a person has put in, in other words than ours, all that an entry itself does to a file.

        Counted by the lines that this entry adds and takes out in the fork: those of the entries around it say nothing.
        """
        old = {new: old for old, new in self.renames.items()}.get(path, path)
        now, was = self.fork.after(number).get(old), self.fork.after(self.before(number)).get(old)
        if now is None or path not in self.theirs or not view.exists(path):
            return False
        before = was.data if was else self.base.read(old) if old in self.base else b""
        added, gone = _lines(now.data) - _lines(before), _lines(before) - _lines(now.data)
        have, there = _lines(view.read(path)), _lines(self.theirs.read(path))
        return bool(added) and not added - (have - there) and all(have[line] <= _lines(now.data)[line] for line in gone)


def rows(carrier: Carrier, entry: Entry, plant: Plant, view: View) -> Iterator[tuple[Plant, Judgement]]:
    """One plant and judgement for each half of an entry, for the ledger."""
    for index, half in enumerate(carrier.halves(entry.number), 1):
        half = carrier.by_hand(entry.number, half, view)
        unit = carrier.decisions.number_of(half)
        message = f"unit {unit}: {half.evidence}" if unit and not half.settled else half.evidence or half.how
        yield (
            replace(plant, id=f"{plant.id}-{index}"),
            Judgement(
                verdict_of(half),
                message,
                half.path,
                half.rows[0] + 1,
                half.host,
                f"{half.text} ({message})" if message else half.text,
            ),
        )


def verdict_of(half: Half) -> Verdict:
    """DESIGN's verdict for a half's state."""
    if half.state in (DROPPED, LOOK):
        return Verdict.NOT_DUE if half.state == DROPPED else Verdict.SIBLING
    if half.state == CARRIED:
        return Verdict.PLANTED if half.exact else Verdict.MOVED if "moved" in half.how else Verdict.RECONCILED
    if half.state in (PROPOSAL, LEFT_OUT):
        gone = half.evidence.startswith("upstream no longer has") and "the statement" not in half.evidence
        return Verdict.HOST_GONE if gone else Verdict.UNDECIDED
    return Verdict.ADOPTED if half.state == ADOPTED else Verdict.COMMENT_LOST


def _version(tag: str) -> Version | None:
    """A tag's release, None for one that is not a release's."""
    try:
        return Version(tag.removeprefix("v"))
    except InvalidVersion:
        return None


def _name(half: Half) -> tuple[str, str, str]:
    return half.path, half.host, half.text


def _halves(old: bytes, new: bytes, state: str, evidence: str) -> tuple[Half, ...]:
    texts = (each.decode("utf-8", "surrogateescape") for each in (old, new))
    return text_halves(*texts, state, evidence)


def _laid_on(path: str, old: State | None, new: State | None, here: bytes | None) -> bytes | None:
    """An entry's difference on a file that something else changed too. Raises Unplantable where both touch a line."""
    if old is None or new is None or here is None:
        raise Unplantable(Verdict.UNDECIDED, f"{path} was added, removed or changed by something else as well")
    made = by_lines(*(each.decode("latin-1") for each in (old.data, new.data, here)))
    if not all(half.settled for half in made.halves):
        raise Unplantable(Verdict.UNDECIDED, f"something else changed the same lines of {path}")
    return made.text.encode("latin-1")


def _here(view: View, path: str) -> bytes | None:
    """A file's bytes in a view, of a link its target, None if there is neither."""
    if view.exists(path):
        return view.read(path)
    is_link = path in view.tree and path not in view.changes and view.tree.mode(path) == _LINK
    return view.tree.read(path) if is_link else None


def _missing(view: View, path: str, was: State | None, now: State | None, last: State | None) -> tuple[int, str] | None:
    """(line, message) of the first thing that an entry brought to a file and that a view lacks; None: all is there."""
    here = _here(view, path)
    if here in (now.data if now else None, last.data if last else None):
        return None
    if here is None or now is None or last is None or here == (was.data if was else None):
        return 1, f"{path} is not as the entry makes it"
    have, want = _lines(here), _lines(last.data)
    for line, count in (_lines(now.data) - _lines(was.data if was else b"")).items():
        if have[line] < min(count + _lines(was.data if was else b"")[line], want[line]):
            return _line_of(now.data, line), f"a line of the entry is not in {path}"
    for line in _lines(was.data if was else b"") - _lines(now.data):
        if have[line] > max(_lines(now.data)[line], want[line]):
            return _line_of(here, line), f"a line that the entry takes out is in {path}"
    return None


def _lines(data: bytes) -> Counter[bytes]:
    return Counter(line.strip() for line in data.split(b"\n") if line.strip())


def _line_of(data: bytes, wanted: bytes) -> int:
    return next((row for row, line in enumerate(data.split(b"\n"), 1) if line.strip() == wanted), 1)


def unsettled(halves: Iterable[Half]) -> list[Half]:
    """The halves that wait for a person."""
    return [half for half in halves if half.state in (PROPOSAL, LEFT_OUT)]
