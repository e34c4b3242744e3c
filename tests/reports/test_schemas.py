"""Every JSON that we publish is as its schema says, and the schemas know every word."""

from __future__ import annotations

import json
import sys
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from stackctl.cli.explain import SCHEMAS
from stackctl.cli.main import COMMANDS
from stackctl.model.probe import State, Told
from stackctl.model.verdict import EntryVerdict, Level, Verdict
from stackctl.reports.board import SIGNS
from stackctl.reports.json import render_json
from stackctl.reports.sections import sections
from tests.cli.forks import copy, fork, merge
from tests.reports import hostile
from tests.reports.restarting import facts_of, make_fork, report_of
from tests.support import ROOT, commit_files, git

RULE = 'title = "t"\ntext = "print("\npaths = ["python/**/*.py"]\nexpect = "absent"\n[[good]]\ncode = "x"\n[[bad]]\ncode = "print(x)"\n'
PROBE = 'kind = "flag"\ntitle = "workers"\nflag = "--tokenizer-worker-num"\n'
DONE = '[[item]]\nid = "lint"\nfigure = "lint"\nmust = "zero"\n[[item]]\nid = "todo"\ncommand = "python -c 0"\n'


def schema(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "stackctl/reports/schemas" / f"{name}.json").read_text())


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(schema(name))


def problems(name: str, table: Any) -> list[str]:
    return [f"{list(error.absolute_path)}: {error.message[:300]}" for error in validator(name).iter_errors(table)]


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    at = fork(tmp_path_factory.mktemp("schemas"))
    entry = (at.repo / "entries/001-worker/entry.toml").read_text().replace("[[plant]]", '[probes]\nactive = ["workers"]\n\n[[plant]]', 1)
    files = {"checks/rules/no-print.toml": RULE, "checks/probes/workers.toml": PROBE, "checks/done.toml": DONE, "entries/001-worker/entry.toml": entry}
    commit_files(at.repo, {**files, "notes.py": "# MERGE-TODO B4 (1): fold\n", "test/test_x.py": "def test_x(): assert 0\n"}, "more")
    git(at.repo, "tag", "deployed")
    merge(at)
    return at


@pytest.fixture
def at(template, tmp_path):
    return copy(template, tmp_path)


WORDS = {
    "verify": ["verify"],
    "audit": ["audit", "--merge", "HEAD"],
    "gate": ["gate", "--frozen", "deployed"],
    "apply": ["apply", "--onto", "v0.5.23", "--dry-run"],
    "replant": ["replant", "--at", "HEAD", "--branch", "mended"],
    "check": ["check", "rules", "--at", "HEAD"],
    "markers": ["markers", "--since", "deployed"],
    "probe": ["probe", "--python", sys.executable, "--launch", "serve", "--save", "answers.json"],
    "attribute": ["attribute", "--done", "--repeat", "1", "--", "test/test_x.py"],
    "report restart": ["report", "restart", "--since", "deployed", "--python", sys.executable, "--launch", "serve"],
    "report merge": ["report", "merge", "HEAD"],
    "list": ["list", "--at", "HEAD"],
    "show": ["show", "1", "--at", "HEAD"],
    "upstream list": ["upstream", "list"],
}


@pytest.mark.parametrize("name", WORDS)
def test_what_a_command_prints(at, name):
    repo = [] if name == "probe" else ["--repo", at.repo]
    words = [*WORDS[name][:2], *repo, *WORDS[name][2:]] if name.startswith(("report", "check", "upstream", "show")) else [*WORDS[name][:1], *repo, *WORDS[name][1:]]
    head, tail = (words[: words.index("--")], words[words.index("--") :]) if "--" in words else (words, [])
    done = at.run(*head, "--format", "json", *tail, cwd=at.folder)
    table = json.loads(done.out)
    assert table["command"] == name and problems("report", table) == []
    if name == "probe":
        assert problems("probes", json.loads((at.folder / "answers.json").read_text())) == []


def test_every_summary_has_a_schema():
    """One that is open everywhere would hold for anything."""
    defined = {name.removeprefix("summary-") for name in schema("report")["$defs"] if name.startswith("summary-")}
    assert {name.replace(" ", "-") for name in WORDS} <= defined
    assert {name.split("-")[0] for name in defined} <= set(COMMANDS)
    assert problems("report", {"schema": 1, "command": "gate", "entries": [], "ledger": [], "summary": {}, "findings": []})


def test_the_words_are_ours():
    defs = schema("report")["$defs"]
    assert set(defs["verdict"]["enum"]) == set(Verdict)
    assert set(defs["entry"]["properties"]["kind"]["enum"]) == {*EntryVerdict, ""}
    assert set(defs["finding"]["properties"]["level"]["enum"]) == set(Level)
    assert set(defs["matrix"]["properties"]["rows"]["additionalProperties"]["items"]["enum"]) == set(SIGNS)
    for name in ("report", "probes"):
        defs = schema(name)["$defs"]
        assert set(defs["answer"]["properties"]["told"]["enum"]) == set(Told)
        assert set(defs["state"]["properties"]["state"]["enum"]) == set(State)


def test_a_whole_checklist_and_hostile_texts(tmp_path):
    facts = facts_of(make_fork(tmp_path))
    assert problems("report", json.loads(render_json(report_of(facts)))) == []
    assert [section.id for section in sections(facts)] == schema("report")["$defs"]["section"]["properties"]["id"]["enum"]
    table = json.loads(render_json(hostile.report()))
    assert [each for each in problems("report", table) if not each.startswith("['summary']")] == []


def test_the_schemas_are_in_order_and_explained(at):
    for topic, file in SCHEMAS.items():
        Draft202012Validator.check_schema(schema(file.removesuffix(".json")))
        assert json.loads(at.run("explain", topic).out) == schema(file.removesuffix(".json"))
    page = at.run("explain", "json").out
    assert all(f"`{name}`" in page or f"{name} |" in page for name in schema("report")["properties"])
    assert all(f"| {name} |" in page for name in schema("report")["$defs"]["section"]["properties"]["id"]["enum"])
