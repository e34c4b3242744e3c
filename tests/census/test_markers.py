"""Markers: their syntax, what they are known by again, and what became of them."""

from __future__ import annotations

import re

import pytest

from stackctl.census.markers import DEFAULT, Consumed, Marker, conflicts, consume, count, find_markers, load_consumed
from stackctl.model.errors import StackctlError
from stackctl.plants.manifest import ManifestError
from tests.census.merging import MemoryTree

SYNTAX = re.compile(DEFAULT)


def find(files: dict[str, str], stock: dict[str, str] | None = None) -> list[Marker]:
    return find_markers(MemoryTree("t", files), None if stock is None else MemoryTree("s", stock), SYNTAX)


@pytest.mark.parametrize(("line", "batch", "entries", "text"), [
    ("# MERGE-TODO B4 (61,176): fold it", "B4", ("61", "176"), "fold it"),
    ("x = 1  # MERGE-TODO: B4 entry 61 fold it", "B4", ("61",), "fold it"),
    ("// MERGE MARKER B12: entries 1, 2 / 3: fold", "B12", ("1", "2", "3"), "fold"),
    ("<!-- MERGE-REVIEW b2 fold it -->", "B2", (), "fold it"),
    ("# FORK-MERGE-DECIDE (300)", "", ("300",), ""),
    ("# MERGE_TODO B5", "B5", (), ""),
    ("# MERGE-TODO decide later", "", (), "decide later"),
])  # fmt: skip
def test_the_usual_syntax(line, batch, entries, text):
    (marker,) = find({"a.py": f"\n{line}\n"})
    assert (marker.line, marker.batch, marker.entries) == (2, batch, entries)
    assert marker.text == (text or marker.text)


@pytest.mark.parametrize("line", ["# merge the two", "MERGE-TODO = 3", "# merge-todo list of the merge queue", "# MERGE-TODOS B4", "# the merge marker"])
def test_other_comments(line):
    assert find({"a.py": line}) == []


def test_upstreams_own_files_are_not_read():
    files = {"a.py": "# MERGE-TODO B1 x\n", "b.py": "# MERGE-TODO B1 x\n"}
    assert [marker.path for marker in find(files, {"a.py": files["a.py"], "b.py": ""})] == ["b.py"]


def test_conflict_markers():
    tree = MemoryTree("t", {"a.md": "x\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n", "b.rst": "Title\n=======\n<<<<<<<<<\n"})
    (finding,) = conflicts(tree, None)
    assert (finding.path, finding.line) == ("a.md", 2)


# What became of them


def census(before: dict[str, str], now: dict[str, str], *consumed: Marker, batch: str = ""):
    decisions = [Consumed(m.id, "decided", 1, m.batch, m.entries, m.path, m.text) for m in consumed]
    return count(find(now), find(before), decisions, "v1", batch)


ONE, TWO, OTHER = "# MERGE-TODO B4 (61): one\n", "# MERGE-TODO B4 (62): two\n", "# MERGE-TODO B1 (9): other\n"


def test_intact():
    found = census({"a.py": ONE + OTHER}, {"a.py": "x\n" + OTHER + ONE})
    assert found.findings == []
    assert [(row["batch"], row["before"], row["now"], row["intact"]) for row in found.batches()] == [("B1", 1, 1, True), ("B4", 1, 1, True)]
    assert found.entries() == {"61": 1, "9": 1}


def test_moved_to_another_file():
    assert census({"a.py": ONE}, {"b.py": ONE}).findings == []


def test_gone_without_a_word():
    (finding,) = census({"a.py": ONE + TWO}, {"a.py": TWO}).findings
    assert finding.level is None and finding.entry == "61" and "no decision is on record: one" in finding.message


def test_consumed():
    found = census({"a.py": ONE + TWO}, {"a.py": TWO}, find({"a.py": ONE})[0])
    assert found.findings == []
    assert found.batches() == [{"batch": "B4", "before": 2, "now": 1, "consumed": 1, "vanished": 0, "intact": False}]


def test_the_batch_at_work_may_grow_shorter_and_no_other():
    """The fork's log: B4 = 0 on the tree, foreign B1, B2, B5 intact."""
    found = census({"a.py": ONE + OTHER}, {"a.py": "\n"}, batch="b4")
    (finding,) = found.findings
    assert "batch B1 is not intact" in finding.message


def test_the_forks_own_statement():
    """The seed: "true session census is 23/23, B4=0 on the tree, foreign B1 15/B2 2/B5 23 INTACT"."""
    foreign = {"a.py": "".join(f"# MERGE-TODO {b} ({n}): x\n" for b, many in (("B1", 15), ("B2", 2), ("B5", 23)) for n in range(many))}
    mine = {"b.py": "".join(f"# MERGE-TODO B4 ({n}): y\n" for n in range(23))}
    found = census({**foreign, **mine}, foreign, *find(mine), batch="B4")
    assert found.findings == []
    assert [(row["batch"], row["now"], row["consumed"], row["intact"]) for row in found.batches()] == [
        ("B1", 15, 0, True), ("B2", 2, 0, True), ("B4", 0, 23, False), ("B5", 23, 0, True),
    ]  # fmt: skip


def test_twins_are_counted():
    twins = {"a.py": ONE * 3}
    one = find(twins)[0]
    assert len({marker.id for marker in find(twins)}) == 3
    assert census(twins, {"a.py": ONE * 2}, one).findings == []
    assert len(census(twins, {"a.py": ONE}, one).findings) == 1


def test_decided_and_still_there():
    (finding,) = census({"a.py": ONE}, {"a.py": ONE}, find({"a.py": ONE})[0]).findings
    assert str(finding.severity) == "warning" and "is decided and still there" in finding.message


# The record


def test_a_decision_is_recorded_and_read_back(tmp_path):
    path = tmp_path / "checks" / "markers.toml"
    markers = find({"a.py": ONE + '# MERGE-TODO B4 (62): say "two" \\ \x07\n'})
    for marker in markers:
        consume(path, markers, marker.id[:6], 'superseded:\n"gate" is gone \\o/')
    assert [(c.id, c.key, c.decision) for c in load_consumed(path)] == [(m.id, m.key, 'superseded:\n"gate" is gone \\o/') for m in markers]


@pytest.mark.parametrize(("name", "decision", "message"), [("", "x", "no markers"), ("zz", "x", "no markers"), ("*", " ", "needs words")])
def test_a_decision_that_is_not_taken(tmp_path, name, decision, message):
    markers = find({"a.py": ONE})
    with pytest.raises(StackctlError, match=message):
        consume(tmp_path / "m.toml", markers, markers[0].id if name == "*" else name, decision)
    assert not (tmp_path / "m.toml").exists()


def test_a_second_decision_is_refused(tmp_path):
    markers = find({"a.py": ONE})
    consume(tmp_path / "m.toml", markers, markers[0].id, "x")
    with pytest.raises(StackctlError, match="on record already"):
        consume(tmp_path / "m.toml", markers, markers[0].id, "y")


def test_a_record_that_is_not_in_order(tmp_path):
    (tmp_path / "m.toml").write_text('[[consumed]]\nid = "x"\n')
    with pytest.raises(ManifestError, match=r"m\.toml:1: decision is missing"):
        load_consumed(tmp_path / "m.toml")
