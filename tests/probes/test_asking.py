"""What the answers make of entries, and what changed since the last restart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stackctl.census.verify import woken
from stackctl.model.errors import StackctlError
from stackctl.model.probe import State
from stackctl.model.report import EntryRow, Report
from stackctl.model.verdict import EntryVerdict, Exit, Verdict
from stackctl.plants.manifest import ManifestError, load_stack
from stackctl.plants.stacks import open_stack
from stackctl.probes.asking import Asking, ask_all, changes, load_asking, report, save_asking
from stackctl.probes.declared import ProbesError, load_probes
from tests.probes.environments import install, venv
from tests.support import write_files

PLANT = '[[plant]]\nid = "a"\nkind = "tombstone"\ntext = "never here"\n'


def entry(number: int, probes: str, disposition: str = 'disposition = "permanent"\nreason = "r"') -> str:
    return f'number = {number}\ntitle = "Entry {number}"\n{disposition}\n{probes}\n{PLANT}'


def probe(**keys: str) -> str:
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())


ENTRIES = {
    "entries/001-active/entry.toml": entry(1, '[probes]\nactive = ["fi-071"]'),
    "entries/002-flag/entry.toml": entry(2, '[probes]\nactive = ["workers"]'),
    "entries/003-inert/entry.toml": entry(3, '[probes]\ninert = ["workers"]'),
    "entries/004-off/entry.toml": entry(4, "", 'disposition = "blocked"\nblocked_by = "probe uniform"'),
    "entries/005-plain/entry.toml": entry(5, ""),
    "checks/probes/fi-071.toml": probe(
        kind="distribution", title="FlashInfer 0.7.1", name="flashinfer-python", versions=">=0.7.1"
    ),
    "checks/probes/workers.toml": probe(kind="flag", title="several tokenizer workers", flag="--tokenizer-worker-num"),
    "checks/probes/uniform.toml": probe(
        kind="parameter", title="plan() takes uniform_q_len", target="flashinfer:plan", parameter="uniform_q_len"
    ),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_files(tmp_path / "stack", {"stack.toml": 'name = "s"\n', **ENTRIES})
    return tmp_path / "stack"


def asked(root: Path, python: Path, launch: str | None = "serve", since: Asking | None = None) -> Asking:
    return ask_all(load_stack(root), load_probes(root), python, launch, since, now="2026-10-15T00:00:00Z")


def states(asking: Asking) -> dict[int, str]:
    return {state.entry: str(state.state) for state in asking.states}


def test_states(root, tmp_path):
    old = asked(
        root, venv(tmp_path / "old", {"flashinfer/__init__.py": "def plan(q): ...\n"}, flashinfer_python="0.7.0")
    )
    assert states(old) == {1: "inert", 2: "inert", 3: "active", 4: "put-off"}
    assert "flashinfer-python 0.7.0 is installed, which is not >=0.7.1" in old.states[0].why and old.states[
        0
    ].wakes == ("fi-071",)
    files = {"flashinfer/__init__.py": "def plan(q, uniform_q_len): ...\n"}
    new = asked(root, venv(tmp_path / "new", files, flashinfer_python="0.7.1"), "serve --tokenizer-worker-num 2", old)
    assert states(new) == {1: "active", 2: "active", 3: "inert", 4: "due-again"}
    assert {row.get("entry"): (row["before"], row["after"]) for row in changes(old, new) if "entry" in row} == {
        "1": ("inert", "active"),
        "2": ("inert", "active"),
        "3": ("active", "inert"),
        "4": ("put-off", "due-again"),
    }
    assert new.history == (
        {"asked_at": "2026-10-15T00:00:00Z", "states": {"1": "inert", "2": "inert", "3": "active", "4": "put-off"}},
    )
    assert changes(new, new) == [] and changes(None, new) == []


def test_a_broken_environment_is_not_judged_and_not_inert(root, tmp_path):
    broken = asked(root, tmp_path / "nowhere/bin/python")
    assert states(broken) == {1: "not-judged", 2: "inert", 3: "active", 4: "not-judged"}
    found = report(broken, None, load_stack(root), load_probes(root))
    assert found.exit is Exit.NOT_JUDGED
    assert {row.number: row.verdict for row in found.entries}["1"] is EntryVerdict.NOT_JUDGED


def test_answers_are_kept_and_compared(root, tmp_path):
    first = asked(root, venv(tmp_path / "env", flashinfer_python="0.7.0"))
    save_asking(first, tmp_path / "answers.json")
    assert load_asking(tmp_path / "answers.json") == first
    found = report(first, None, load_stack(root), load_probes(root))
    (tmp_path / "whole.json").write_text(json.dumps(found.to_json()))
    assert load_asking(tmp_path / "whole.json") == first
    (tmp_path / "bad.json").write_text("[]")
    for name in ("bad.json", "none.json"):
        with pytest.raises(StackctlError):
            load_asking(tmp_path / name)


def test_the_census_calls_a_whole_entry_inert_and_a_broken_one_broken(root, tmp_path):
    asking = asked(root, venv(tmp_path / "env", flashinfer_python="0.7.0"))
    rows = [
        EntryRow("1", "t", EntryVerdict.WHOLE),
        EntryRow("2", "t", EntryVerdict.HALF),
        EntryRow("3", "t", EntryVerdict.WHOLE),
        EntryRow("5", "t", EntryVerdict.WHOLE),
    ]
    found = woken(Report("verify", tuple(rows)), {state.entry: state for state in asking.states})
    assert [row.verdict for row in found.entries] == [
        EntryVerdict.INERT,
        EntryVerdict.HALF,
        EntryVerdict.WHOLE,
        EntryVerdict.WHOLE,
    ]
    assert "FlashInfer 0.7.1" in found.entries[0].note and found.exit is Exit.CLEAN
    broken = asked(root, tmp_path / "none/python")
    found = woken(Report("verify", tuple(rows)), {state.entry: state for state in broken.states})
    assert found.entries[0].verdict is EntryVerdict.NOT_JUDGED
    assert [f.kind for f in found.findings] == [Verdict.NOT_JUDGED] and found.exit is Exit.NOT_JUDGED


def test_the_kept_stack_is_read_again_when_a_probe_comes_or_goes(root, tmp_path, monkeypatch):
    monkeypatch.setenv("STACKCTL_CACHE", str(tmp_path / "cache"))
    assert open_stack(root) == open_stack(root) == load_stack(root)
    (root / "checks/probes/workers.toml").unlink()
    with pytest.raises(ManifestError, match="no probe 'workers' in checks/probes"):
        open_stack(root)


def test_mistakes_in_manifests(root):
    write_files(
        root,
        {
            "entries/001-active/entry.toml": entry(1, '[probes]\nactiv = ["fi-071"]\ninert = ["fi-701", 3]'),
            "entries/004-off/entry.toml": entry(4, "", 'disposition = "blocked"\nblocked_by = "probe unifrom"'),
        },
    )
    with pytest.raises(ManifestError) as caught:
        load_stack(root)
    said = [problem.message for problem in caught.value.problems]
    assert said == [
        "probes has no role 'activ'; did you mean 'active'?",
        "no probe 'fi-701' in checks/probes; did you mean 'fi-071'?",
        "probes.inert holds 3, where text is wanted",
        "no probe 'unifrom' in checks/probes; did you mean 'uniform'?",
    ]


def test_mistakes_in_probes(root):
    write_files(
        root,
        {
            "checks/probes/a.toml": probe(kind="flagg", title="t"),
            "checks/probes/b.toml": probe(kind="flag", flag="tp"),
            "checks/probes/c.toml": "kind =",
            "checks/probes/d.toml": probe(kind="symbol", title="t", target="a.b", nam="x"),
            "checks/probes/e.toml": probe(kind="distribution", title="t", name="x", versions="0.7"),
        },
    )
    with pytest.raises(ProbesError) as caught:
        load_probes(root)
    said = "\n".join(caught.value.problems)
    for words in (
        "no probe kind 'flagg'; did you mean 'flag'?",
        "needs a title",
        "does not start with a dash",
        "c.toml: is not TOML",
        "'a.b' is not module:Class.function",
        "no key 'nam'",
        "'0.7' is not a range",
    ):
        assert words in said, said


def test_another_environment_of_the_same_files_changes_nothing(root, tmp_path):
    write_files(root, {"checks/probes/where.toml": probe(kind="file", title="t", path="x.py")})
    one, two = (asked(root, venv(tmp_path / name, {"x.py": ""}, flashinfer_python="0.7.1")) for name in ("one", "two"))
    assert changes(one, two) == []
    install(tmp_path / "two", "flashinfer-python", "0.7.2")
    assert State.NOT_JUDGED in {state.state for state in asked(root, tmp_path / "two/bin/python").states}
