"""What follows from the facts of a restart, section by section. Pure: no file is read here."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from stackctl.model.probe import EntryState, State, Told
from stackctl.model.report import EntryRow, Finding
from stackctl.model.stack import Disposition, Entry
from stackctl.model.verdict import EntryVerdict, Verdict
from stackctl.probes.asking import due_again_probes, touched_by
from stackctl.probes.launch import parse_launch
from stackctl.reports.locks import Bump
from stackctl.reports.restart import Facts, Item, Section

_SHORT = 12


def sections(facts: Facts) -> list[Section]:
    """The checklist, in the order in which it is worked through."""
    asked = "" if facts.asking else "no environment was asked: --python PATH"
    return [
        Section(
            "environment",
            "Environment",
            tuple(_environment(facts)),
            "no two lock files were given: --locks OLD NEW" if not facts.wanted.locks else "nothing moved",
        ),
        Section("entries", "Entries changed since the deployed tip", tuple(_entries(facts))),
        Section("woken", "Active from this restart on", tuple(_woken(facts)), asked or "none"),
        Section("inert", "Inert, and what wakes it", tuple(_inert(facts)), asked or "none"),
        Section("put-off", "Put off", tuple(_put_off(facts))),
        Section("switches", "Switches", tuple(_switches(facts))),
        Section("caveats", "Caveats", tuple(_caveats(facts))),
        Section("watch", "Behaviour to watch", tuple(_watch(facts))),
        Section(
            "smoke",
            "Smoke results",
            tuple(_smoke(facts)),
            "no run folder was given: --smoke DIR" if not facts.wanted.smoke else "the folder holds no results",
        ),
        Section("findings", "Open findings", tuple(_findings(facts.now.findings))),
        Section("rollback", "Rollback", tuple(_rollback(facts))),
    ]


def changed_entries(facts: Facts) -> dict[int, str]:
    """Number to broken, added, changed, adopted or retired, for every entry that is not as it was at the deployed tip."""
    numbers = (
        {entry.number for entry in facts.stack.entries} | set(facts.carried_before) | set(facts.declared_before or {})
    )
    found = {number: _change(facts, number) for number in sorted(numbers)}
    return {number: word for number, word in found.items() if word}


def _change(facts: Facts, number: int) -> str:
    entry, before = facts.stack.entry(number), _was_there(facts, number)
    if entry is None or entry.disposition.tombstone:
        return "retired" if before and not _was_retired(facts, number) else ""
    if entry.disposition in (Disposition.BLOCKED, Disposition.CANDIDATE):
        return "changed" if before and _reasons(facts, entry) else ""
    if not before:
        return "added"
    if _broke(facts, number):
        return "broken"
    if _verdict(facts, number) is EntryVerdict.ADOPTED and _verdict_before(facts, number) not in (
        EntryVerdict.ADOPTED,
        None,
    ):
        return "adopted"
    return "changed" if _reasons(facts, entry) else ""


def _broke(facts: Facts, number: int) -> str:
    """What an entry was at the deployed tip and is now, if it was right then and is not."""
    before, now = _verdict_before(facts, number), _verdict(facts, number)
    right, wrong = (EntryVerdict.WHOLE, EntryVerdict.ADOPTED), (EntryVerdict.HALF, EntryVerdict.ABSENT)
    return f"{before} at the deployed tip, {now} now" if before in right and now in wrong else ""


def _was_there(facts: Facts, number: int) -> bool:
    if number in facts.carried_before:
        return True
    if facts.declared_before is not None:
        return number in facts.declared_before
    # Without the stack's history: an entry that upstream had whole left no commit, and its halves are in the tree.
    return _verdict_before(facts, number) in (EntryVerdict.WHOLE, EntryVerdict.ADOPTED) and number not in facts.carried


def _was_retired(facts: Facts, number: int) -> bool:
    old = (facts.declared_before or {}).get(number)
    word = (
        old.disposition if old else facts.carried_before[number].disposition if number in facts.carried_before else ""
    )
    # Without any commit or manifest of that time, a tombstone was one before.
    return word in (Disposition.RETIRED, Disposition.SUPERSEDED) or (old is None and number not in facts.carried_before)


def _reasons(facts: Facts, entry: Entry) -> list[str]:
    """In what an entry is not as it was."""
    number = entry.number
    says = [broke] if (broke := _broke(facts, number)) else []
    old, carried, before = (
        (facts.declared_before or {}).get(number),
        facts.carried.get(number),
        facts.carried_before.get(number),
    )
    then = old.disposition if old else before.disposition if before else str(entry.disposition)
    if then != entry.disposition:
        says.append(f"disposition {then} → {entry.disposition}")
    if old and old.default != entry.default:
        says.append(f"default {old.default or 'none'} → {entry.default or 'none'}")
    if carried and before and carried.commit != before.commit:
        same = carried.digest == before.digest
        says.append(
            f"planted again by {carried.commit[:_SHORT]}"
            + (", as it was declared before" if same else ", declared otherwise than before")
        )
    elif old and old.digest != facts.declared[number].digest and then == entry.disposition:
        says.append("its manifest or files changed")
    return says


def _row(facts: Facts, number: int) -> EntryRow | None:
    return next((row for row in facts.now.entries if row.number == str(number)), None)


def _verdict(facts: Facts, number: int) -> EntryVerdict | None:
    row = _row(facts, number)
    return row.verdict if row else None


def _verdict_before(facts: Facts, number: int) -> EntryVerdict | None:
    return next((row.verdict for row in (facts.then.entries if facts.then else ()) if row.number == str(number)), None)


def _entries(facts: Facts) -> Iterator[Item]:
    """What broke first, then default-on ones, then by number; what is retired last."""
    changed = changed_entries(facts)
    live = [entry for number in changed if (entry := facts.stack.entry(number)) is not None]
    for entry in sorted(live, key=lambda each: _place(each, changed[each.number])):
        word = changed[entry.number]
        yield Item(
            f"{word}-{entry.number}",
            _subject(entry),
            tuple(_says(facts, entry, word)),
            word,
            entry.number,
            entry.default,
        )
    for number in changed:
        if facts.stack.entry(number) is None:
            old = (facts.declared_before or {}).get(number)
            yield Item(
                f"retired-{number}",
                f"{number} {old.title if old else ''}".strip(),
                ("no longer in the stack",),
                "retired",
                number,
            )


def _place(entry: Entry, word: str) -> tuple[bool, bool, bool, int]:
    return entry.disposition.tombstone, word != "broken", entry.default != "on", entry.number


def _subject(entry: Entry) -> str:
    refs = f" ({', '.join(entry.upstream)})" if entry.upstream else ""
    return f"{entry.number} {entry.title}{refs}"


def _says(facts: Facts, entry: Entry, word: str) -> Iterator[str]:
    if word == "retired":
        yield from _retired(entry)
        return
    row = _row(facts, entry.number)
    if entry.default:
        yield f"default {entry.default.upper()}" + (f", switch {entry.switch}" if entry.switch else "")
    if row:
        yield f"{row.verdict}{_extent(facts, entry)}" + (f", missing: {', '.join(row.missing)}" if row.missing else "")
    yield from _adoption(facts, entry)
    for other in facts.stack.entries:
        if str(other.decision.get("superseded_by", "")) == f"entry {entry.number}":
            yield f"entry {other.number} ({other.title}) is dropped for it: {other.decision.get('evidence', '')}"
    yield from (
        f"exclusive with entry {other.number} ({other.title}): two arms of one experiment, never both on"
        for other in _excluded(facts, entry)
    )
    yield from _reasons(facts, entry) if word in ("changed", "broken") else ()
    yield from _decision(entry)


def _retired(entry: Entry) -> Iterator[str]:
    by = (
        f"superseded by {entry.decision['superseded_by']}"
        if "superseded_by" in entry.decision
        else str(entry.disposition)
    )
    yield f"{by}: {entry.decision.get('evidence') or entry.decision.get('reason', '')}"


def _extent(facts: Facts, entry: Entry) -> str:
    paths = [row.path for row in facts.now.ledger if row.entry == str(entry.number) and row.path]
    count = len(entry.plants)
    tests = paths and all(path.startswith("test") or path.rpartition("/")[2].startswith("test_") for path in paths)
    return f", {count} {'half' if count == 1 else 'halves'}{', tests only' if tests else ''}"


def _adoption(facts: Facts, entry: Entry) -> Iterator[str]:
    rows = [row for row in facts.now.ledger if row.entry == str(entry.number)]
    own = [row.plant for row in rows if row.verdict is Verdict.ADOPTED]
    if own:
        release = facts.now.summary.get("release", "")
        yield f"upstream adopted {len(own)} of {len(rows)} halves: {', '.join(own)} ({release})"


def _excluded(facts: Facts, entry: Entry) -> list[Entry]:
    others = {*entry.excludes, *(other.number for other in facts.stack.entries if entry.number in other.excludes)}
    found = (facts.stack.entry(number) for number in sorted(others))
    return [other for other in found if other is not None and not other.disposition.tombstone]


def _decision(entry: Entry) -> Iterator[str]:
    words = {
        key: entry.decision[key] for key in ("commit", "url", "remove_when", "blocked_by") if key in entry.decision
    }
    said = {"commit": "backport of", "url": "submitted:", "remove_when": "goes when", "blocked_by": "blocked by"}
    yield from (f"{said[key]} {value}" for key, value in words.items())
    if entry.decision.get("partial"):
        yield "a part of that commit only"


def _environment(facts: Facts) -> Iterator[Item]:
    """Bumps that touch an entry one by one; all others in one line."""
    touching = {bump: list(_touched(facts, bump)) for bump in facts.bumps}
    for bump, said in touching.items():
        if said:
            says = (*said, *_installed(facts, bump))
            yield Item(f"bump-{bump.name}", bump.move, says, bump.word)
    if others := [bump for bump, said in touching.items() if not said]:
        words = ", ".join(bump.move for bump in others)
        count = f"{len(others)} {'more ' if len(others) < len(facts.bumps) else ''}bump{'' if len(others) == 1 else 's'}"
        yield Item("bumps", f"{count} that no probe asks about", (words,))


def _touched(facts: Facts, bump: Bump) -> Iterator[str]:
    names = {probe.name for probe in touched_by(bump.name, facts.probes.values())}
    by_state: dict[str, list[int]] = {}
    for entry in facts.stack.entries:
        if names & {*(name for role in entry.probes.values() for name in role), *due_again_probes(entry)}:
            state = facts.asking.state(entry.number) if facts.asking else None
            by_state.setdefault(str(state.state) if state else "not asked", []).append(entry.number)
    for word, numbers in by_state.items():
        yield f"touches {_entries_named(numbers)}: {word}"


def _entries_named(numbers: list[int]) -> str:
    return f"entr{'y' if len(numbers) == 1 else 'ies'} {', '.join(map(str, numbers))}"


def _installed(facts: Facts, bump: Bump) -> Iterator[str]:
    found = facts.installed.get(bump.name)
    if found == bump.new:
        yield f"resolved: the environment has {found or 'it no longer'}"
    elif found == "?":
        yield "the environment cannot tell what it has"
    elif found is not None:
        yield f"not yet: the environment has {found or 'none'}"


def _states(facts: Facts, *wanted: State) -> Iterator[tuple[Entry, EntryState]]:
    for state in facts.asking.states if facts.asking else ():
        if state.state in wanted and (entry := facts.stack.entry(state.entry)) is not None:
            yield entry, state


def _past(facts: Facts, number: int, *words: State) -> list[str]:
    """The days of earlier restarts at which an entry's state was one of these."""
    history = facts.asking.history if facts.asking else ()
    return [str(each["asked_at"])[:10] for each in history if each["states"].get(str(number)) in words]


def _last(facts: Facts, number: int) -> str:
    history = facts.asking.history if facts.asking else ()
    return history[-1]["states"].get(str(number), "") if history else ""


def _woken(facts: Facts) -> Iterator[Item]:
    for entry, state in _states(facts, State.ACTIVE):
        if _last(facts, entry.number) in (State.INERT, State.NOT_JUDGED):
            days = _past(facts, entry.number, State.INERT)
            says = ["ACTIVE from this restart on", *_by_bump(facts, entry), state.why]
            says += [f"history: INERT on {', '.join(days)}, which no longer holds"] if days else []
            yield Item(f"woken-{entry.number}", _subject(entry), tuple(says), "active", entry.number, entry.default)


def _by_bump(facts: Facts, entry: Entry) -> Iterator[str]:
    names = {name for role in entry.probes.values() for name in role} | set(due_again_probes(entry))
    for bump in facts.bumps:
        if names & {probe.name for probe in touched_by(bump.name, facts.probes.values())}:
            yield f"asked again after {bump.move}"


def _inert(facts: Facts) -> Iterator[Item]:
    for entry, state in _states(facts, State.INERT, State.NOT_JUDGED):
        if due_again_probes(entry):
            continue  # among those put off
        probes = "; ".join(facts.probes[name].title for name in state.wakes)
        unsure = state.state is State.NOT_JUDGED
        held = any(name in entry.probes.get("inert", ()) for name in state.wakes)
        wakes = f"wakes when {'this no longer holds' if held else 'this holds'}: {probes}"
        says = (f"not judged: {state.why}",) if unsure else ("INERT but correct", wakes, state.why)
        tag = "not-judged" if unsure else "inert"
        yield Item(f"inert-{entry.number}", _subject(entry), says, tag, entry.number, entry.default)


def _put_off(facts: Facts) -> Iterator[Item]:
    for entry in facts.stack.entries:
        state = facts.asking.state(entry.number) if facts.asking else None
        if state is not None and due_again_probes(entry):
            again = _past(facts, entry.number, State.PUT_OFF)
            told = {State.DUE_AGAIN: "due again", State.NOT_JUDGED: "not-judged"}
            tag = told.get(state.state, "put off again" if again else "put off")
            says = [*_by_bump(facts, entry), state.why, *([f"put off before: {', '.join(again)}"] if again else [])]
            yield Item(f"put-off-{entry.number}", _subject(entry), tuple(says), tag, entry.number)
        elif entry.disposition in (Disposition.BLOCKED, Disposition.CANDIDATE):
            why = entry.decision.get("blocked_by") or entry.decision.get("reason", "")
            yield Item(
                f"put-off-{entry.number}",
                _subject(entry),
                (f"{entry.disposition}: {why}",),
                str(entry.disposition),
                entry.number,
            )


def _live(facts: Facts) -> Iterator[Entry]:
    idle = (Disposition.BLOCKED, Disposition.CANDIDATE)
    return (entry for entry in facts.stack.entries if not entry.disposition.tombstone and entry.disposition not in idle)


def _switches(facts: Facts) -> Iterator[Item]:
    for entry in _live(facts):
        if entry.switch:
            says = f"{_value(facts, entry.switch)}; default {entry.default or 'not told'}; entry {entry.number}"
            yield Item(f"switch-{entry.number}", entry.switch, (says,), "", entry.number, entry.default)


def _value(facts: Facts, switch: str) -> str:
    """What a switch is set to for the launch: in front of its command, or in the environment that was asked in."""
    launched = parse_launch(facts.wanted.launch).variables if facts.wanted.launch else {}
    values = {**(facts.asking.variables if facts.asking else {}), **launched}
    if switch in values:
        return f"set to {values[switch]}"
    return "not set" if facts.wanted.launch else "value not known: --launch tells it"


def _caveats(facts: Facts) -> Iterator[Item]:
    yield from _mismatches(facts)
    seen: set[frozenset[int]] = set()
    for entry in _live(facts):
        for other in _excluded(facts, entry):
            pair = frozenset((entry.number, other.number))
            if pair not in seen:
                seen.add(pair)
                text = f"entries {entry.number} and {other.number} exclude each other: at most one on"
                yield Item(
                    f"exclusive-{min(pair)}-{max(pair)}",
                    text,
                    (f"default {entry.default or 'none'} and {other.default or 'none'}",),
                    "exclusive",
                )
    changed = set(changed_entries(facts)) | {
        entry.number for entry, _ in _states(facts, State.ACTIVE) if _last(facts, entry.number) == State.INERT
    }
    for entry in _live(facts):
        if entry.number in changed and entry.notes.strip():
            first = entry.notes.strip().split("\n\n")[0]
            yield Item(
                f"note-{entry.number}",
                f"{entry.number} {entry.title}",
                (" ".join(first.split()),),
                "note",
                entry.number,
            )


def _mismatches(facts: Facts) -> Iterator[Item]:
    """What was planted and what is declared are not the same."""
    for number, carried in sorted(facts.carried.items()):
        entry = facts.stack.entry(number)
        if entry is None:
            yield Item(
                f"stray-{number}",
                f"entry {number} is in the tree and not in the stack",
                (f"planted by {carried.commit[:_SHORT]}",),
                "stray",
                number,
            )
        elif carried.digest != entry.digest and not entry.disposition.tombstone:
            says = (
                f"planted by {carried.commit[:_SHORT]} from {carried.digest}, the manifest is {entry.digest} now",
                "apply the stack, then report again",
            )
            yield Item(
                f"stale-{number}", f"entry {number} is declared otherwise than it was planted", says, "stale", number
            )
    if facts.asking and facts.asking.problem:
        yield Item("environment-problem", "the environment cannot be judged", (facts.asking.problem,), "not-judged")
    for answer in facts.asking.answers if facts.asking else ():
        if answer.told is Told.NOT_JUDGED:
            yield Item(
                f"probe-{answer.probe}",
                f"not judged: {facts.probes[answer.probe].title}",
                (answer.evidence,),
                "not-judged",
            )


def _watch(facts: Facts) -> Iterator[Item]:
    """Behaviour of entries that do something here, new ones first. "metric: threshold" is how a manifest writes it."""
    fresh = set(changed_entries(facts)) | {
        entry.number for entry, _ in _states(facts, State.ACTIVE) if _last(facts, entry.number) == State.INERT
    }
    asleep = {entry.number for entry, _ in _states(facts, State.INERT)}
    for entry in sorted(_live(facts), key=lambda each: (each.number not in fresh, each.number)):
        for index, text in enumerate(entry.watch if entry.number not in asleep else ()):
            metric, colon, threshold = text.partition(": ")
            says = (f"threshold: {threshold}" if colon else "no threshold is declared",)
            yield Item(
                f"watch-{entry.number}-{index}",
                metric,
                (*says, f"entry {entry.number}"),
                "new" if entry.number in fresh else "",
                entry.number,
            )


def _smoke(facts: Facts) -> Iterator[Item]:
    for name, word, detail in facts.smoke:
        yield Item(f"smoke-{name}", name, (detail,) if detail else (), word)


def _findings(findings: Iterable[Finding]) -> Iterator[Item]:
    for index, finding in enumerate(findings):
        where = f"{finding.path}:{finding.line}" if finding.line else finding.path
        says = [
            " ".join(filter(None, (where, finding.symbol))),
            finding.evidence,
            f"do: {finding.action or finding.kind.action}",
        ]
        number = int(finding.entry) if finding.entry.isdecimal() else 0
        name = "/".join(filter(None, (finding.entry, finding.plant)))
        yield Item(
            f"finding-{index}-{name}",
            f"{finding.kind} {name}: {finding.message}",
            tuple(filter(None, says)),
            str(finding.severity),
            number,
        )


def _rollback(facts: Facts) -> Iterator[Item]:
    yield Item(
        "rollback-code",
        f"the code, to the deployed tip ({facts.since.subject})",
        (),
        "",
        command=f"git checkout --detach {facts.since.commit}",
    )
    old = [f"{bump.name}=={bump.old}" for bump in facts.bumps if bump.old and bump.old[0].isdigit()]
    if old:
        python = str(facts.wanted.python or "python")
        yield Item(
            "rollback-environment",
            "the environment, to the old lock file",
            (),
            "",
            command=shlex.join([python, "-m", "pip", "install", *old]),
        )
    gone = [bump.name for bump in facts.bumps if not bump.old]
    if gone:
        yield Item(
            "rollback-added",
            "what the new lock file added",
            (),
            "",
            command=shlex.join([str(facts.wanted.python or "python"), "-m", "pip", "uninstall", "--yes", *gone]),
        )
    for number, word in changed_entries(facts).items():
        entry = facts.stack.entry(number)
        if entry is not None and word in ("added", "changed", "broken") and entry.switch and entry.default == "on":
            yield Item(
                f"rollback-{number}",
                f"entry {number} alone, without a rollback: its switch {entry.switch}",
                (),
                "",
                number,
            )
