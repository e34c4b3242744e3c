"""Ask every probe, say what the answers make of each entry, and what changed since the last restart."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stackctl.model.errors import StackctlError
from stackctl.model.probe import Answer, EntryState, Probe, State, Told
from stackctl.model.report import EntryRow, Finding, Report
from stackctl.model.stack import Entry, Stack
from stackctl.model.verdict import EntryVerdict, Level, Verdict
from stackctl.probes.environment import normal, open_environment
from stackctl.probes.kinds import Asked, ask
from stackctl.probes.launch import parse_launch


@dataclass(frozen=True)
class Asking:
    """One round of questions. `history` holds the states told at earlier restarts, oldest first.

    `problem` says why the environment as a whole cannot be judged, "" if it can.
    """

    python: str
    launch: str
    asked_at: str
    answers: tuple[Answer, ...]
    states: tuple[EntryState, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    history: tuple[Mapping[str, Any], ...] = ()
    problem: str = ""

    def state(self, number: int) -> EntryState | None:
        """The state of one entry, None for one that names no probe."""
        return next((state for state in self.states if state.entry == number), None)

    def answer(self, probe: str) -> Answer | None:
        """The answer to one probe."""
        return next((answer for answer in self.answers if answer.probe == probe), None)

    def to_json(self) -> dict[str, Any]:
        """The round as a JSON object, which a later round compares itself with."""
        return {
            "python": self.python,
            "launch": self.launch,
            "asked_at": self.asked_at,
            "problem": self.problem,
            "variables": dict(self.variables),
            "answers": [answer.to_json() for answer in self.answers],
            "states": [state.to_json() for state in self.states],
            "history": [dict(each) for each in self.history],
        }


def ask_all(
    stack: Stack,
    probes: Mapping[str, Probe],
    python: Path,
    launch: str | None,
    since: Asking | None = None,
    now: str = "",
) -> Asking:
    """Ask every probe of the stack once."""
    command = parse_launch(launch) if launch is not None else None
    asked = Asked(open_environment(python), command)
    answers = tuple(ask(probe, asked) for probe in probes.values())
    told = {answer.probe: answer for answer in answers}
    states = tuple(state for entry in stack.entries if (state := entry_state(entry, told, probes)) is not None)
    set_here = {**asked.variables, **(command.variables if command else {})}
    switches = {entry.switch: set_here[entry.switch] for entry in stack.entries if entry.switch in set_here}
    problem = asked.environment.problem
    return Asking(str(python), launch or "", now or timestamp(), answers, states, switches, history_of(since), problem)


def timestamp() -> str:
    """Now, in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def history_of(since: Asking | None) -> tuple[Mapping[str, Any], ...]:
    """The states of every earlier round, `since`'s own last."""
    if since is None:
        return ()
    return (
        *since.history,
        {"asked_at": since.asked_at, "states": {str(state.entry): str(state.state) for state in since.states}},
    )


def due_again_probes(entry: Entry) -> tuple[str, ...]:
    """The probes that say when a port that was put off is due: its own, and what blocks it."""
    blocker = str(entry.decision.get("blocked_by", ""))
    return (
        *entry.probes.get("due_again", ()),
        *([blocker.removeprefix("probe ").strip()] if blocker.startswith("probe ") else ()),
    )


def entry_state(entry: Entry, told: Mapping[str, Answer], probes: Mapping[str, Probe]) -> EntryState | None:
    """What the answers make of an entry. A certain no outweighs what could not be judged."""
    active, inert, due = (entry.probes.get(role, ()) for role in ("active", "inert", "due_again"))
    if waits := tuple(dict.fromkeys(due_again_probes(entry))) or due:
        return _due(entry, [told[name] for name in waits], probes)
    if not active and not inert:
        return None
    against = [told[name] for name in active if told[name].told is Told.ABSENT]
    against += [told[name] for name in inert if told[name].told is Told.PRESENT]
    if against:
        return EntryState(entry.number, State.INERT, _why(against, probes), tuple(answer.probe for answer in against))
    if unsure := [told[name] for name in (*active, *inert) if told[name].told is Told.NOT_JUDGED]:
        return EntryState(
            entry.number, State.NOT_JUDGED, _why(unsure, probes), tuple(answer.probe for answer in unsure)
        )
    return EntryState(entry.number, State.ACTIVE, _why([told[name] for name in (*active, *inert)], probes))


def _due(entry: Entry, answers: Sequence[Answer], probes: Mapping[str, Probe]) -> EntryState:
    waiting = [answer for answer in answers if answer.told is Told.ABSENT]
    if waiting:
        return EntryState(entry.number, State.PUT_OFF, _why(waiting, probes), tuple(answer.probe for answer in waiting))
    if unsure := [answer for answer in answers if answer.told is Told.NOT_JUDGED]:
        return EntryState(
            entry.number, State.NOT_JUDGED, _why(unsure, probes), tuple(answer.probe for answer in unsure)
        )
    return EntryState(entry.number, State.DUE_AGAIN, _why(answers, probes))


def _why(answers: Iterable[Answer], probes: Mapping[str, Probe]) -> str:
    return "; ".join(f"{_WORDS[answer.told]}: {probes[answer.probe].title} ({answer.evidence})" for answer in answers)


_WORDS = {Told.PRESENT: "yes", Told.ABSENT: "no", Told.NOT_JUDGED: "not judged"}


def changes(before: Asking | None, after: Asking) -> list[dict[str, str]]:
    """Every probe whose answer, and every entry whose state, is another than at the last restart."""
    if before is None:
        return []
    rows = []
    for answer in after.answers:
        old = before.answer(answer.probe)
        if old is None or (old.told, old.found) != (answer.told, answer.found) and not _moved_only(old, answer):
            rows.append({"probe": answer.probe, "before": _said(old), "after": _said(answer)})
    for state in after.states:
        was = before.state(state.entry)
        if was is None or was.state is not state.state:
            rows.append(
                {"entry": str(state.entry), "before": str(was.state) if was else "not asked", "after": str(state.state)}
            )
    return rows


def _moved_only(old: Answer, new: Answer) -> bool:
    """A file's path tells nothing new where only the environment's folder is another."""
    return old.told is new.told and old.found.startswith("/") and new.found.startswith("/")


def _said(answer: Answer | None) -> str:
    return "not asked" if answer is None else f"{answer.told} {answer.found}".strip()


def touched_by(distribution: str, probes: Iterable[Probe]) -> list[Probe]:
    """The probes whose answer a release of `distribution` may change."""
    return [probe for probe in probes if normal(distribution) in _owners(probe)]


def _owners(probe: Probe) -> set[str]:
    names = [probe.distribution, probe.options.get("name", "") if probe.kind == "distribution" else ""]
    if not probe.distribution:
        names.append(str(probe.options.get("target", "")).split(":")[0].split(".")[0])
    return {normal(name) for name in names if name}


def report(asking: Asking, before: Asking | None, stack: Stack, probes: Mapping[str, Probe]) -> Report:
    """The round as a report. What is due again is a note; what was not judged turns it red."""
    findings = [_finding(state) for state in asking.states if state.state in (State.NOT_JUDGED, State.DUE_AGAIN)]
    if asking.problem:  # no probe need have asked it, and a path that is misspelt is not for nothing
        findings.append(Finding(Verdict.NOT_JUDGED, "the environment cannot be judged", evidence=asking.problem))
    lone = [answer for answer in asking.answers if answer.told is Told.NOT_JUDGED]
    findings += [
        Finding(Verdict.NOT_JUDGED, f"probe {answer.probe}: {probes[answer.probe].title}", evidence=answer.evidence)
        for answer in lone
    ]
    rows = tuple(_row(entry, state) for entry in stack.entries if (state := asking.state(entry.number)))
    return Report(
        "probe",
        rows,
        (),
        tuple(findings),
        {"stack": stack.name, **asking.to_json(), "changed": changes(before, asking)},
    )


def _finding(state: EntryState) -> Finding:
    if state.state is State.DUE_AGAIN:
        return Finding(
            Verdict.NOT_DUE,
            "a port that was put off is due again",
            entry=str(state.entry),
            evidence=state.why,
            action="re-port",
            level=Level.NOTE,
        )
    return Finding(
        Verdict.NOT_JUDGED, "whether this entry is active cannot be told", entry=str(state.entry), evidence=state.why
    )


_VERDICTS = {
    State.ACTIVE: EntryVerdict.WHOLE,
    State.INERT: EntryVerdict.INERT,
    State.PUT_OFF: EntryVerdict.INERT,
    State.DUE_AGAIN: EntryVerdict.INERT,
    State.NOT_JUDGED: EntryVerdict.NOT_JUDGED,
}


def _row(entry: Entry, state: EntryState) -> EntryRow:
    return EntryRow(
        str(entry.number),
        entry.title,
        _VERDICTS[state.state],
        str(entry.disposition),
        (),
        f"{state.state}: {state.why}",
    )


def load_asking(path: Path) -> Asking:
    """An earlier round, from what `probe --save` or `probe --format json` wrote."""
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        table = table.get("summary", table)
        return Asking(
            table["python"],
            table["launch"],
            table["asked_at"],
            tuple(Answer(row["probe"], Told(row["told"]), row["found"], row["evidence"]) for row in table["answers"]),
            tuple(
                EntryState(row["entry"], State(row["state"]), row["why"], tuple(row["wakes"]))
                for row in table["states"]
            ),
            table.get("variables", {}),
            tuple(table.get("history", ())),
            table.get("problem", ""),
        )
    except OSError as error:
        raise StackctlError(f"cannot be read: {error.strerror}", str(path)) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StackctlError(
            f"holds no answers of `stackctl probe`: {error!r}", str(path), "write them with: stackctl probe --save FILE"
        ) from None


def save_asking(asking: Asking, path: Path) -> None:
    """Keep a round for the next restart to compare with."""
    from stackctl.trees.cache import replace_text

    replace_text(path, json.dumps(asking.to_json(), indent=2) + "\n")
