"""The census: the verdict on each half, on each entry, and the exit code they add up to."""

from __future__ import annotations

import pytest

from stackctl.carry.planting import plant_entries
from stackctl.census.memo import Memo
from stackctl.census.verify import verify
from stackctl.model.verdict import EntryVerdict, Exit, Level, Verdict
from stackctl.plants.manifest import load_stack
from stackctl.plants.view import View
from stackctl.trees.release import Release
from stackctl.trees.tree import OverlayTree
from tests.cli.hostile import ENTRIES, HOST, SERVING, UPSTREAM
from tests.plants.planting import MemoryTree
from tests.support import write_files

RELEASE = Release("0.5.23")


@pytest.fixture
def stack(tmp_path):
    write_files(tmp_path, ENTRIES)
    return load_stack(tmp_path)


def tree(**changes: str | None) -> MemoryTree:
    files = {name: data.encode() for name, data in UPSTREAM.items()}
    return MemoryTree(files | {name: data.encode() for name, data in changes.items() if data is not None})


def planted(stack, base=None):
    base = base or tree()
    view = View(base, stack, RELEASE, View(base, stack, RELEASE))
    plant_entries(stack.entries, view)
    return OverlayTree(base, dict(view.changes))


def rows(report):
    return {row.plant: row.verdict for row in report.ledger}


def test_stock_has_nothing_and_a_planted_tree_all(stack):
    stock = verify(stack, tree(), RELEASE, tree())
    assert stock.exit is Exit.FINDINGS
    assert {row.verdict for row in stock.entries} == {EntryVerdict.ABSENT}
    whole = verify(stack, planted(stack), RELEASE, tree())
    assert whole.exit is Exit.CLEAN and whole.findings == ()
    assert set(rows(whole).values()) == {Verdict.INTACT}
    assert {row.verdict for row in whole.entries} == {EntryVerdict.WHOLE}


@pytest.mark.parametrize("path", [HOST, "data.json", "python/sglang/srt/worker.py"])
def test_a_half_that_is_gone_is_named_with_its_path(stack, path):
    whole = planted(stack)
    broken = OverlayTree(whole.base, {**whole.changes, path: UPSTREAM[path].encode() if path in UPSTREAM else None})
    report = verify(stack, broken, RELEASE, tree())
    assert report.exit is Exit.FINDINGS
    assert {finding.path for finding in report.findings if finding.plant} == {path}
    assert EntryVerdict.HALF in {row.verdict for row in report.entries}


def test_a_half_with_two_places_is_an_error_and_never_clean(stack):
    twice = SERVING.replace("return self.convert(request)\n\n    def", "self.convert(request)\n        return self.convert(request)\n\n    def")
    base = tree(**{HOST: twice})
    report = verify(stack, base, RELEASE, base)
    (found,) = [finding for finding in report.findings if finding.plant == "convert"]
    assert found.kind is Verdict.AMBIGUOUS and found.severity is Level.ERROR
    assert verify(stack, planted(stack, base), RELEASE, base).exit is Exit.FINDINGS


def test_what_stock_has_too_is_adopted_and_only_with_stock(stack):
    whole = planted(stack)
    report = verify(stack, whole, RELEASE, whole)
    assert set(rows(report).values()) == {Verdict.ADOPTED}
    assert {row.verdict for row in report.entries} == {EntryVerdict.ADOPTED} and report.exit is Exit.CLEAN
    assert Verdict.ADOPTED not in rows(verify(stack, whole, RELEASE)).values()


def test_adopted_in_part(stack):
    whole = planted(stack)
    stock = OverlayTree(whole.base, {**whole.changes, HOST: SERVING.encode()})
    report = verify(stack, stock, RELEASE, stock)
    assert {f.kind for f in report.findings if f.entry == "1"} == {Verdict.LOST, Verdict.ADOPTED_IN_PART}


def test_a_statement_that_upstream_has_elsewhere_too_is_not_taken_for_ours(stack):
    """Planting once removed upstream's own `ours()` from another function as a misplaced copy."""
    base = tree(**{HOST: SERVING + "\n\ndef other():\n    ours()\n    return\n"})
    assert rows(verify(stack, base, RELEASE, base))["start"] is Verdict.LOST
    whole = planted(stack, base)
    text = whole.read(HOST).decode()
    assert text.count("ours()") == 2 and "def other():\n    ours()\n" in text
    assert verify(stack, whole, RELEASE, base).exit is Exit.CLEAN


def test_a_statement_of_ours_in_another_host_is_misplaced_and_put_right(stack):
    whole = planted(stack)
    moved = whole.read(HOST).replace(b"    ours()\n", b"") + b"\n\ndef other():\n    pass\n    ours()\n"
    base = tree(**{HOST: SERVING + "\n\ndef other():\n    pass\n"})
    wrong = OverlayTree(base, {**whole.changes, HOST: moved})
    assert rows(verify(stack, wrong, RELEASE, base))["start"] is Verdict.MISPLACED
    view = View(wrong, stack, RELEASE, View(base, stack, RELEASE))
    plant_entries(stack.entries, view)
    assert view.read(HOST).decode().count("ours()") == 1
    assert verify(stack, OverlayTree(wrong, dict(view.changes)), RELEASE, base).exit is Exit.CLEAN


def test_not_due_is_a_note(stack, tmp_path):
    manifest = ENTRIES["entries/002-start/entry.toml"].replace('id = "start"', 'id = "start"\nreleases = ">=0.5.24"')
    write_files(tmp_path, {"entries/002-start/entry.toml": manifest})
    later = load_stack(tmp_path)
    report = verify(later, planted(later), RELEASE, tree())
    assert rows(report)["start"] is Verdict.NOT_DUE and report.exit is Exit.CLEAN


def test_the_memo_believes_nothing_that_changed(stack, tmp_path):
    store = tmp_path / "verdicts.sqlite"
    whole = planted(stack)
    for expected, judged in ((Exit.CLEAN, whole), (Exit.CLEAN, whole), (Exit.FINDINGS, tree()), (Exit.CLEAN, whole)):
        with Memo(store) as memo:
            assert verify(stack, judged, RELEASE, tree(), memo.judge).exit is expected
    write_files(tmp_path, {"entries/001-worker/files/python/sglang/srt/worker.py": "changed = 1\n"})
    with Memo(store) as memo:
        assert verify(load_stack(tmp_path), whole, RELEASE, tree(), memo.judge).exit is Exit.FINDINGS


@pytest.mark.parametrize("data", [b"", b"not a database", b"SQLite format 3\x00" + b"\xff" * 100])
def test_a_memo_that_cannot_be_read_is_left_aside(stack, tmp_path, data):
    store = tmp_path / "verdicts.sqlite"
    store.write_bytes(data)
    with Memo(store) as memo:
        assert verify(stack, planted(stack), RELEASE, tree(), memo.judge).exit is Exit.CLEAN
