"""The log of a merge: every half has one decision with its evidence, the counts add up, and what is left is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

from stackctl.carry.apply import apply, replant
from stackctl.census.lint import find_ruff, lint_merge
from stackctl.census.markers import LEDGER, consume, find_markers, pattern_of
from stackctl.cli.main import cli
from stackctl.model.errors import StackctlError
from stackctl.model.verdict import Exit, Verdict
from stackctl.plants.manifest import load_stack
from stackctl.reports.merge import decisions, judge_merge, merge_report
from stackctl.reports.merge_markdown import render_merge_markdown
from stackctl.reports.restart import Wanted, gather
from stackctl.reports.sections import changed_entries, sections
from stackctl.trees.tree import GitTree
from tests.census.merging import MemoryTree
from tests.support import commit_files, git, repository_of, write_files

HEAD = 'number = {n}\ntitle = "{title}"\ndisposition = "permanent"\nreason = "r"\n'
STACK = {
    "stack.toml": 'name = "s"\n',
    "entries/001-hook/entry.toml": HEAD.format(n=1, title="Hook the runner")
    + """
[[plant]]
id = "hook"
kind = "definition"
host = "sglang.runner:Runner"
after = "go"
code = '''
def hook(self):
    return 1
'''

[[plant]]
id = "call"
kind = "statement"
host = "sglang.runner:Runner.go"
before = "return x"
code = "self.hook()"
""",
    "entries/002-gather/entry.toml": HEAD.format(n=2, title="Gather over PCIe | <b>`x`")
    + """
[[plant]]
id = "flag"
kind = "argument"
host = "sglang.gather:build"
call = "Gather"
keyword = "pcie_ipc"
value = "True"
""",
    "entries/003-fix/entry.toml": HEAD.format(n=3, title="A fix that upstream takes")
    + """
[[plant]]
id = "fix"
kind = "statement"
host = "sglang.fixed:check"
before = "return y"
code = "y = y or 0"
""",
}
RUNNER = "class Runner:\n    def go(self, x):\n        return x\n\n    def stop(self):\n        pass\n"
FILES = {
    "python/sglang/version.py": '__version__ = "0.5.22"\n',
    "python/sglang/runner.py": RUNNER,
    "python/sglang/gather.py": "def build(size):\n    return Gather(size)\n",
    "python/sglang/fixed.py": "def check(y):\n    return y\n",
}
NEWER = {
    "python/sglang/version.py": '__version__ = "0.5.23"\n',
    "python/sglang/fixed.py": "def check(y):\n    y = y or 0\n    return y\n",
    "python/sglang/gather.py": "def build(size):\n    return Gather(size, 2)\n",
}


@pytest.fixture(scope="module")
def merged(tmp_path_factory):
    """(repository, stack): a merge that lost two halves while upstream took a third; put right at `repaired`."""
    folder = tmp_path_factory.mktemp("merge")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STACKCTL_CACHE", str(folder / "cache"))
        write_files(folder / "stack", STACK)
        stack = load_stack(folder / "stack")
        repository = repository_of(folder / "repo", FILES)
        git(repository.path, "tag", "v0.5.22")
        apply(stack, repository, "v0.5.22", branch="fork")
        commit_files(repository.path, NEWER, "0.5.23")
        git(repository.path, "tag", "v0.5.23")
        git(repository.path, "checkout", "--quiet", "fork")
        git(repository.path, "merge", "--quiet", "--no-commit", "-X", "theirs", "v0.5.23", check=False)
        text = (repository.path / "python/sglang/runner.py").read_text()
        start = text.index("    def hook")
        write_files(
            repository.path,
            {
                **NEWER,
                "python/sglang/runner.py": text[:start] + text[text.index("    def stop") :] + "\nundefined_name\n",
            },
        )
        git(repository.path, "add", "--all")
        git(repository.path, "commit", "--quiet", "--message", "merge 0.5.23 <script>")
        git(repository.path, "tag", "merge")
        git(repository.path, "checkout", "--quiet", "--detach")
        replant(stack, repository, "merge", branch="repaired")
        yield repository, stack


def test_what_the_merge_lost(merged):
    repository, stack = merged
    judged = judge_merge(stack, repository, "merge", audit=False, lint=False)
    found = {(row.entry, row.plant): (row.word, row.ours, row.merged) for row in decisions(judged)}
    assert found == {
        ("1", "hook"): ("needs you", "intact", "lost"),
        ("1", "call"): ("kept", "intact", "intact"),
        ("2", "flag"): ("needs you", "intact", "lost"),
        ("3", "fix"): ("adopted by upstream", "intact", "adopted"),
    }
    report = merge_report(judged)
    assert report.exit is Exit.FINDINGS and report.summary["damage"] == {"merge": 2, "now": 2}


def test_what_was_put_back(merged):
    repository, stack = merged
    report = merge_report(judge_merge(stack, repository, "merge", "repaired"))
    rows = {(row["entry"], row["plant"]): row for row in report.summary["rows"]}
    assert rows["1", "hook"]["word"] == rows["2", "flag"]["word"] == "re-planted"
    assert (
        rows["1", "hook"]["evidence"].startswith("lost at the merge (")
        and "put back by " in rows["1", "hook"]["evidence"]
    )
    assert rows["3", "fix"]["word"] == "adopted by upstream" and "stock upstream 0.5.23" in rows["3", "fix"]["evidence"]
    assert report.summary["damage"] == {"merge": 2, "now": 0}


def test_the_counts_add_up(merged):
    repository, stack = merged
    for after in (None, "repaired"):
        report = merge_report(judge_merge(stack, repository, "merge", after))
        summary = report.summary
        assert sum(summary["decisions"].values()) == summary["halves"] == len(report.ledger) == 4
        assert all(sum(audit["verdicts"].values()) == audit["halves"] for audit in summary["audits"])
        assert sum(summary["left"].values()) == len(report.findings)
        assert len(summary["audits"]) == (2 if after else 1)


@pytest.mark.skipif(find_ruff() is None, reason="ruff is not installed")
def test_lint_names_only_what_the_merge_added(merged):
    repository, _ = merged
    ours, theirs, tree = (GitTree(repository, ref) for ref in ("merge^1", "merge^2", "merge"))
    lint = lint_merge(ours, theirs, tree)
    assert lint.touched == ("python/sglang/runner.py",)  # gather.py is theirs, and Gather undefined on both sides
    assert [(each.path, each.code, each.line) for each in lint.added] == [("python/sglang/runner.py", "F821", 9)]
    assert [f.kind for f in lint.findings()] == [Verdict.UNRESOLVED]


@pytest.mark.skipif(find_ruff() is None, reason="ruff is not installed")
def test_lint_by_difference_counts(tmp_path):
    side = MemoryTree("side", {"a.py": "x()\ny()\n", "ruff.toml": "exclude = ['*']\n"})
    other = MemoryTree("other", {"a.py": "x()\n"})
    merged = MemoryTree(
        "merged", {"a.py": "x()\nx()\ny()  # noqa\n", "b.py": "def (\n", "ruff.toml": "exclude = ['*']\n"}
    )
    lint = lint_merge(side, other, merged)
    assert [(each.path, each.line, each.code) for each in lint.added][:2] == [("a.py", 2, "F821"), ("b.py", 1, "")]
    assert lint.counts[:2] == (2, 1)
    assert {f.kind for f in lint.findings()} == {Verdict.UNRESOLVED, Verdict.UNPARSABLE}


def test_without_ruff_it_is_not_judged(monkeypatch):
    monkeypatch.setattr("stackctl.census.lint.find_ruff", lambda: None)
    lint = lint_merge(MemoryTree("a", {}), MemoryTree("b", {}), MemoryTree("c", {"a.py": "x()\n"}))
    assert [f.kind for f in lint.findings()] == [Verdict.NOT_JUDGED] and "not installed" in lint.problem
    assert lint_merge(MemoryTree("a", {}), MemoryTree("b", {}), MemoryTree("c", {})).findings() == []


def test_the_log_and_hostile_text(merged):
    repository, stack = merged
    text = render_merge_markdown(merge_report(judge_merge(stack, repository, "merge", "repaired")))
    assert "- declared halves: 4 = 2 re-planted + 1 kept + 1 adopted by upstream" in text
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    assert not {token.type for token in tokens} & {"html_block", "html_inline"}
    assert not {child.type for token in tokens for child in token.children or ()} & {
        "html_inline",
        "link_open",
        "image",
        "em_open",
    }
    assert all(sum(each.type == "td_open" for each in row) == 5 for row in _rows(tokens))


def _rows(tokens):
    row, rows, body = [], [], False
    for token in tokens:
        body = token.type == "tbody_open" or (body and token.type != "tbody_close")
        row.append(token)
        if token.type == "tr_open":
            row = []
        elif token.type == "tr_close" and body:
            rows.append(row)
    return rows


def test_the_command(merged, tmp_path):
    repository, stack = merged
    words = ["--stack", str(stack.root), "report", "merge", "merge", "--repo", str(repository.path)]
    done = CliRunner().invoke(cli, [*words, "--format", "json"], standalone_mode=False)
    table = json.loads(done.stdout)
    assert done.return_value == 1 and table["command"] == "report merge" and table["schema"] == 1
    assert {row["kind"] for row in table["ledger"]} == {"lost", "intact", "adopted"}
    done = CliRunner().invoke(cli, [*words, "--after", "v0.5.23"], standalone_mode=False)
    assert isinstance(done.exception, StackctlError) and "does not stand on the merge" in str(done.exception)


def test_markers_are_told_with_their_decisions(merged, tmp_path):
    """Three markers at the merge: one consumed by a decision, one gone without a word, one waiting; the counts add up."""
    repository, stack = merged
    shutil.copytree(stack.root, tmp_path / "stack")
    own = load_stack(tmp_path / "stack")
    folder = tmp_path / "work"
    git(repository.path, "worktree", "add", "--quiet", "--detach", str(folder), "merge^1")
    git(folder, "merge", "--quiet", "--no-commit", "-X", "theirs", "v0.5.23", check=False)
    marks = "# MERGE-TODO B4 (1): fold the hook\n# MERGE-TODO B4 (2): the flag | <b>\n# MERGE-TODO B5 (1): later\n"
    commit_files(folder, {"python/sglang/own.py": marks}, "merge with markers")
    merge = git(folder, "rev-parse", "HEAD")
    (marker, *_) = find_markers(GitTree(repository, merge), None, pattern_of(own))
    consume(own.root / LEDGER, [marker], marker.id, "verified landed")
    tip = commit_files(folder, {"python/sglang/own.py": "# MERGE-TODO B5 (1): later\n"}, "decided")
    report = merge_report(judge_merge(own, repository, merge, tip, audit=False, lint=False))
    text = render_merge_markdown(report)
    assert "- markers: 3 = 1 consumed + 1 gone + 1 waits" in text and "- batches intact: B5 1" in text
    assert [(row["word"], row["decision"]) for row in report.summary["markers"]][:2] == [
        ("consumed", "verified landed"),
        ("gone", "no decision is on record"),
    ]
    kinds = [(finding.kind, str(finding.severity)) for finding in report.findings if finding.kind is Verdict.MARKER]
    assert kinds == [(Verdict.MARKER, "error"), (Verdict.MARKER, "warning")]
    git(repository.path, "worktree", "remove", "--force", str(folder))


def test_a_commit_that_is_no_merge(merged):
    repository, stack = merged
    with pytest.raises(StackctlError, match="parents, not two"):
        judge_merge(stack, repository, "v0.5.23")
    assert Path(repository.path).is_dir()


def test_the_restart_after_such_a_merge_names_what_upstream_adopted(merged):
    repository, stack = merged
    facts = gather(stack, repository, Wanted("repaired", "merge^1"), {})
    assert changed_entries(facts) == {1: "changed", 2: "changed", 3: "adopted"}
    items = {item.entry: item for section in sections(facts) if section.id == "entries" for item in section.items}
    assert any(says.endswith(", as it was declared before") for says in items[1].says)
    assert "upstream adopted 1 of 1 halves: fix (0.5.23)" in items[3].says
