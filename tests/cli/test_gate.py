"""The gate on a fork that keeps its stack beside its code: red where a merge loses a half, green when it is mended."""

from __future__ import annotations

import json
import os
import re
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree

import pytest
from sarif.loader import load_sarif_file

from stackctl.census.expected import Declared, shrunken
from tests.cli.forks import HOST, VERSION, copy, fork, gate, line_of, marks, merge, repair
from tests.cli.hostile import ENTRIES, UPSTREAM, Bench, bench
from tests.reports.test_sarif import validator
from tests.support import commit_files, git

ENTRY = "entries/001-worker/entry.toml"
MARKER = "# MERGE-TODO B4 (1): fold start into ours\n"


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Bench:
    at = fork(tmp_path_factory.mktemp("gate"))
    commit_files(at.repo, {"notes.py": f"x = 1\n{MARKER}"}, "a marker")
    git(at.repo, "tag", "before")
    merge(at)
    return at


@pytest.fixture
def lost(template, tmp_path) -> Bench:
    """The merge stands at HEAD, and one half is gone."""
    return copy(template, tmp_path)


def said(ran) -> list[tuple[str, str, str]]:
    return [(f["level"], f["kind"], f["entry"] + "/" + f["plant"]) for f in ran.json["findings"]]


def test_a_lost_half_is_red_on_its_line_and_the_repair_closes_the_alert(lost):
    """Judging point 2."""
    red = lost.run("gate", "--repo", lost.repo, "--format", "github", "--sarif", lost.folder / "red.sarif")
    assert red.code == 1
    line = line_of(lost, "return self.convert(request, trace=True)")
    assert red.out.splitlines()[0].startswith(f"::error file={HOST},line={line},title=lost 1/convert::")
    assert "return self.convert(request, trace=True)" in red.out

    repair(lost)
    commit_files(lost.repo, {"notes.py": f"x = 1\n\n\n\n{MARKER}"}, "the marker moves down")
    green = lost.run("gate", "--repo", lost.repo, "--format", "github", "--frozen", "before", "--sarif", lost.folder / "green.sarif")
    assert green.code == 0 and "::error" not in green.out

    before, after = marks(lost.folder / "red.sarif"), marks(lost.folder / "green.sarif")
    closed = {text.split(":")[0] for mark, text in before.items() if mark not in after}
    assert closed == {"lost 1/convert"}
    assert {text.split(":")[0] for mark, text in before.items() if mark in after} == {"marker 1"}


def test_one_run_writes_every_format(lost):
    names = {"--sarif": "a.sarif", "--junit": "a.xml", "--json": "a.json", "--summary": "a.md"}
    (lost.folder / "a.md").write_text("what stood there\n")
    options = [word for option, name in names.items() for word in (option, lost.folder / name)]
    ran = gate(lost, *options)
    assert json.loads((lost.folder / "a.json").read_text()) == ran.json
    sarif = json.loads((lost.folder / "a.sarif").read_text())
    assert not list(validator().iter_errors(sarif))
    assert load_sarif_file(str(lost.folder / "a.sarif")).get_result_count() == len(ran.json["findings"])
    suite = ElementTree.parse(lost.folder / "a.xml").getroot().find("testsuite")
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")
    assert int(suite.get("tests")) > 5
    summary = (lost.folder / "a.md").read_text()
    assert summary.startswith("what stood there\n## stackctl gate: 1 error") and "1/convert" in summary


def test_a_clean_run_is_written_too(lost):
    git(lost.repo, "checkout", "--quiet", "before~1")
    ran = gate(lost, "--sarif", lost.folder / "clean.sarif")
    assert ran.code == 0 and ran.json["findings"] == []
    log = json.loads((lost.folder / "clean.sarif").read_text())
    assert not list(validator().iter_errors(log))
    assert log["runs"][0]["results"] == [] and log["runs"][0]["automationDetails"]["id"] == "stackctl/gate/"


def test_what_is_lost_twice_is_told_once(lost):
    """The census knows the plant, the audit the text: one finding, with both."""
    found = [f for f in gate(lost).json["findings"] if f["kind"] == "lost"]
    assert len(found) == 1 and "our statement is lost: `return await run(self.convert, request)`" in found[0]["evidence"]


# The expected set


def manifest(at: Bench, old: str, new: str, path: str = ENTRY) -> None:
    text = (at.repo / path).read_text()
    assert old in text
    commit_files(at.repo, {path: text.replace(old, new)}, "another manifest")


def plant(name: str) -> str:
    (found,) = re.findall(rf'\[\[plant\]\]\nid = "{name}"\n(?:.+\n)+', ENTRIES[ENTRY])
    return found


def test_a_plant_that_is_declared_no_more(lost):
    manifest(lost, plant("convert"), "")
    ran = gate(lost, "--frozen", "before")
    assert ("error", "undeclared", "1/convert") in said(ran)
    assert ran.json["summary"]["frozen"] == {"ref": "before", "halves": 5}
    (finding,) = [f for f in ran.json["findings"] if f["kind"] == "undeclared"]
    assert finding["path"] == ENTRY and finding["evidence"] == "declared at before"


def test_a_merge_that_shrinks_the_manifest_itself(lost):
    """The default: what the merge's first parent declared."""
    text = (lost.repo / ENTRY).read_text().replace(plant("convert"), "")
    (lost.repo / ENTRY).write_text(text)
    git(lost.repo, "commit", "--quiet", "--all", "--amend", "--no-edit")
    ran = gate(lost)
    assert ran.code == 1 and ("error", "undeclared", "1/convert") in said(ran)


def test_a_range_that_was_narrowed(lost):
    manifest(lost, plant("convert"), plant("convert") + 'releases = "<0.5.23"\n')
    assert ("error", "undeclared", "1/convert") in said(gate(lost, "--frozen", "before"))


def test_a_plant_that_is_declared_otherwise_is_a_note(lost):
    repair(lost)
    manifest(lost, 'after = "setup()"', 'before = "setup()"', "entries/002-start/entry.toml")
    ran = gate(lost, "--frozen", "before")
    (finding,) = [f for f in ran.json["findings"] if f["kind"] == "undeclared"]
    assert (finding["level"], finding["message"]) == ("note", "plant start is declared otherwise: after, before")


TWO = '--- a/data.json\n+++ b/data.json\n@@ -1,4 +1,6 @@\n {\n+  "ours": 1,\n   "theirs": 2,\n   "x": 3\n+  "more": 4\n }\n'


def test_a_patch_that_holds_fewer_places(lost):
    """`refresh` recorded one place of three anew, and nothing in entry.toml showed it."""
    one = (lost.repo / "patches/data.patch").read_text()
    repair(lost)
    commit_files(lost.repo, {"patches/data.patch": TWO}, "two places")
    git(lost.repo, "tag", "two")
    commit_files(lost.repo, {"patches/data.patch": one}, "one")
    (finding,) = [f for f in gate(lost, "--frozen", "two").json["findings"] if f["kind"] == "undeclared"]
    assert (finding["level"], finding["entry"], finding["plant"]) == ("error", "2", "data")
    assert finding["message"] == "the patch of plant data holds less: data.json (1 of 2 places)"


def test_a_patch_or_file_that_is_another_is_a_note(lost):
    repair(lost)
    files = {"patches/data.patch": (lost.repo / "patches/data.patch").read_text().replace('"ours": 1', '"ours": 7')}
    worker = "entries/001-worker/files/python/sglang/srt/worker.py"
    commit_files(lost.repo, {**files, worker: "def run(func, *args):\n    return None\n"}, "other texts")
    found = {f["plant"]: (f["level"], f["message"]) for f in gate(lost, "--frozen", "before").json["findings"] if f["kind"] == "undeclared"}
    assert found == {
        "data": ("note", "plant data is declared otherwise: what is in its patch"),
        "worker": ("note", "plant worker is declared otherwise: what is in its file"),
    }


def test_what_a_person_agreed_to_drop_is_seen():
    old, new = (Declared(1, "e", plants={"p": {"id": "p", "patch": "x", "dropped": names}}) for names in ([], ["p-2"]))
    (finding,) = shrunken({1: old}, {1: new}, None, "before")
    assert (finding.severity, finding.message) == ("warning", "plant p is declared otherwise: dropped")


def test_an_entry_that_is_gone(lost):
    git(lost.repo, "rm", "-r", "--quiet", "entries/002-start", "patches")
    git(lost.repo, "commit", "--quiet", "-m", "gone")
    ran = gate(lost, "--frozen", "before")
    (finding,) = [f for f in ran.json["findings"] if f["kind"] == "undeclared"]
    assert finding["entry"] == "2" and "with 2 halves" in finding["message"]


def test_what_was_edited_since_the_merge_is_in_no_row(lost):
    """Entries' own files that a later commit changed were left out of the findings, and stood as lost in the table."""
    repair(lost)
    manifest(lost, "because", "for other reasons", "entries/002-start/entry.toml")
    ran = gate(lost, "--frozen", "before")
    assert ran.code == 0 and {row["kind"] for row in ran.json["entries"]} == {"whole"}


def test_a_green_run_says_what_it_has_looked_at(lost):
    repair(lost)
    merge = git(lost.repo, "rev-parse", "--short=12", "before~0")
    looked = lost.run("gate", "--repo", lost.repo, "--frozen", "before").out.splitlines()[-1]
    assert "SGLang 0.5.23, merge " in looked and " audited, expected set of before, 1 marker" in looked
    alone = lost.run("gate", "--repo", lost.repo, "--at", "before~1").out.splitlines()[-1]
    assert "no merge at hand, so none audited, no expected set to compare with" in alone and merge not in alone


def test_a_retired_entry_is_no_loss(lost):
    gone = 'number = 2\ntitle = "Start"\ndisposition = "retired"\nreason = "r"\n\n[[plant]]\nid = "ours"\nkind = "tombstone"\npattern = "ours2"\n'
    git(lost.repo, "rm", "-r", "--quiet", "patches")
    commit_files(lost.repo, {"entries/002-start/entry.toml": gone}, "retired")
    assert "undeclared" not in {kind for _, kind, _ in said(gate(lost, "--frozen", "before"))}


# What cannot be judged


def test_manifests_that_do_not_load(lost):
    repair(lost)
    manifest(lost, 'kind = "reroute"', 'kind = "reruote"')
    ran = gate(lost, "--frozen", "before")
    found = [f for f in ran.json["findings"] if f["kind"] == "not-judged"]
    assert ran.code == 2 and len(found) == 1
    assert found[0]["path"] == ENTRY and found[0]["line"] == line_of(lost, "reruote", ENTRY)
    assert "did you mean 'reroute'?" in found[0]["message"]


def test_errors_come_first(lost):
    assert gate(lost, "--merge", "v0.5.23").code == 1  # the census sees the loss; this is no merge


@pytest.mark.parametrize("options", [("--merge", "nowhere"), ("--frozen", "nowhere"), ("--frozen", "upstream"), ("--baseline", "none.toml")])
def test_a_part_that_cannot_be_judged_is_red(lost, options):
    repair(lost)
    ran = gate(lost, *options)
    assert ran.code == 2
    assert [kind for _, kind, _ in said(ran) if kind == "not-judged"]


def test_no_such_commit(lost):
    ran = lost.run("gate", "--repo", lost.repo, "--at", "nowhere")
    assert ran.code == 2 and "no commit named 'nowhere'" in ran.err


# Which merge


def test_two_merges_are_judged_as_one(lost):
    """A half lost in the first and put back after the second is no loss."""
    git(lost.repo, "checkout", "--quiet", "upstream")
    commit_files(lost.repo, {VERSION: '__version__ = "0.5.24"\n', "python/sglang/more.py": "y = 1\n"}, "0.5.24")
    git(lost.repo, "tag", "v0.5.24")
    git(lost.repo, "checkout", "--quiet", "main")
    git(lost.repo, "merge", "--quiet", "--no-edit", "v0.5.24")
    red = gate(lost, "--at", "HEAD", "--frozen", "before", "--merge", "HEAD~1")
    assert ("error", "lost", "1/convert") in said(red)
    repair(lost)
    ran = gate(lost, "--frozen", "before")
    assert ran.code == 0 and len(ran.json["summary"]["merges"]) == 2


def test_a_stack_of_its_own_repository(tmp_path):
    at = bench(tmp_path)
    assert at.apply().code == 0
    at.git("checkout", "--quiet", "stack-0.5.23")
    assert gate(at).code == 0
    commit_files(at.repo, {HOST: UPSTREAM[HOST]}, "all gone")
    assert gate(at).code == 1


# Markers, rules, baseline


def test_conflict_markers_are_found_without_a_merge(lost):
    repair(lost)
    commit_files(lost.repo, {"notes.md": "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> theirs\n"}, "resolved, not")
    ran = gate(lost)
    (finding,) = [f for f in ran.json["findings"] if f["kind"] == "marker" and f["level"] == "error"]
    assert (ran.code, finding["path"], finding["line"]) == (1, "notes.md", 1)


def test_leftover_markers_are_told_one_by_one(lost):
    (finding,) = [f for f in gate(lost).json["findings"] if f["kind"] == "marker"]
    assert (finding["level"], finding["path"], finding["line"], finding["entry"]) == ("warning", "notes.py", 2, "1")


RULE = """title = "Nothing is printed"
text = "print("
paths = ["python/**/*.py"]
expect = "absent"
[[good]]
code = "log(x)"
[[bad]]
code = "print(x)"
"""


def test_a_rule_of_the_stack(lost):
    repair(lost)
    more = {"checks/rules/no-print.toml": RULE, "python/sglang/loud.py": "def f():\n    print(1)\n"}
    commit_files(lost.repo, more, "loud")
    ran = gate(lost)
    (finding,) = [f for f in ran.json["findings"] if f["kind"] == "rule"]
    assert (ran.code, finding["path"], finding["line"], finding["symbol"]) == (1, "python/sglang/loud.py", 2, "f")


BASELINE = """[[known]]
kind = "lost"
path = "python/sglang/srt/serving.py"
symbol = "Serving.handle"
reason = "waits for 0.5.24"
expires = 2999-01-01
"""


def test_a_known_finding_is_a_note_with_its_reason(lost):
    commit_files(lost.repo, {"checks/baseline.toml": BASELINE}, "known")
    ran = gate(lost, "--frozen", "before")
    (finding,) = [f for f in ran.json["findings"] if f["kind"] == "lost"]
    assert ran.code == 0 and finding["level"] == "note" and "known until 2999-01-01: waits for 0.5.24" in finding["evidence"]
    junit = lost.run("gate", "--repo", lost.repo, "--frozen", "before", "--format", "junit")
    assert junit.code == 0 and 'failures="0"' in junit.out


def test_in_text_a_finding_that_is_no_error_says_so(lost):
    """A known loss was printed as if it were an error, with "do: replant"."""
    known = f'[[known]]\nkind = "lost"\npath = "{HOST}"\nsymbol = "Serving.handle"\nreason = "r"\nexpires = 2999-01-01\n'
    commit_files(lost.repo, {"checks/baseline.toml": known}, "known")
    lines = lost.run("gate", "--repo", lost.repo).out.splitlines()
    place = next(n for n, line in enumerate(lines) if ": note: lost 1/convert" in line)
    assert "known until 2999-01-01: r" in lines[place + 1] and "do: " not in lines[place + 2]
    assert any(": warning: marker 1" in line for line in lines)


def test_an_expired_line_counts_for_nothing(lost):
    commit_files(lost.repo, {"checks/baseline.toml": BASELINE.replace("2999", "2020")}, "known")
    found = said(gate(lost, "--frozen", "before"))
    assert ("error", "lost", "1/convert") in found and ("error", "stale-baseline", "/") in found


def test_a_line_that_nobody_needs(lost):
    repair(lost)
    commit_files(lost.repo, {"checks/baseline.toml": BASELINE}, "known")
    ran = gate(lost, "--frozen", "before")
    assert ran.code == 0 and ("warning", "stale-baseline", "/") in said(ran)


def test_a_line_without_a_reason_is_named(lost):
    commit_files(lost.repo, {"checks/baseline.toml": "\n" + BASELINE.replace('reason = "waits for 0.5.24"\n', "")}, "known")
    ran = gate(lost)
    (finding,) = [f for f in ran.json["findings"] if f["kind"] == "not-judged"]
    assert (finding["path"], finding["line"]) == ("checks/baseline.toml", 2) and "reason is missing" in finding["message"]


HOSTILE = "a|b`<script>\n::error file=x::forged\r\x1b[31m%0A[l](http:) \udcff.md"


def test_hostile_names_break_out_of_nothing(lost):
    """Judging point 4, from a file of the tree to every format."""
    repair(lost)
    commit_files(lost.repo, {HOSTILE: "<<<<<<< HEAD\n"}, "hostile")
    paths = {name: lost.folder / name for name in ("sarif", "junit", "json", "summary")}
    ran = lost.run("gate", "--repo", lost.repo, "--format", "github", *(w for name, path in paths.items() for w in (f"--{name}", path)))
    assert ran.code == 1
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in ran.out.splitlines())
    assert [line for line in ran.out.splitlines() if line.startswith("::error")] == [ran.out.splitlines()[0]]
    log = json.loads(paths["sarif"].read_text())
    assert not list(validator().iter_errors(log))
    (result,) = [r for r in log["runs"][0]["results"] if r["level"] == "error"]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert os.fsdecode(unquote_to_bytes(place)) == HOSTILE
    assert ElementTree.parse(paths["junit"]).getroot().get("failures") == "1"
    assert next(f for f in json.loads(paths["json"].read_text())["findings"] if f["level"] == "error")["path"] == HOSTILE
    assert all(line.startswith(("| ", "## ", "commit ")) for line in paths["summary"].read_text().splitlines() if line)
    text = lost.run("gate", "--repo", lost.repo)
    assert "\x1b" not in text.out and "\n::error" not in text.out


def test_a_merge_of_three_cannot_be_judged(lost):
    repair(lost)
    for name in ("one", "two"):
        git(lost.repo, "checkout", "--quiet", "-b", name, "main")
        commit_files(lost.repo, {f"{name}.txt": name}, name)
    git(lost.repo, "checkout", "--quiet", "main")
    git(lost.repo, "merge", "--quiet", "--no-edit", "one", "two", "--no-ff")
    ran = gate(lost)
    assert ran.code == 2 and "has 3 parents, not two" in ran.json["findings"][0]["message"]


def test_a_stack_in_a_folder_of_the_repository(lost):
    repair(lost)
    (lost.repo / "port").mkdir()
    git(lost.repo, "mv", "stack.toml", "entries", "patches", "port")
    git(lost.repo, "commit", "--quiet", "-m", "moved")
    git(lost.repo, "tag", "moved")
    at = Bench(lost.folder, lost.repo / "port", lost.repo)
    assert gate(at, "--frozen", "moved").code == 0
    manifest(at, plant("convert"), "", f"port/{ENTRY}")
    (finding,) = [f for f in gate(at, "--frozen", "moved").json["findings"] if f["kind"] == "undeclared"]
    assert finding["path"] == f"port/{ENTRY}"


def test_a_fork_that_keeps_its_stack_needs_no_repo(lost):
    """Without --repo the cache of upstream was judged, where every entry is gone."""
    named = gate(lost).json
    for folder in (lost.repo, lost.repo / "entries"):
        found = lost.raw("gate", "--format", "json", cwd=folder)
        assert found.returncode == 1 and json.loads(found.stdout)["summary"]["commit"] == named["summary"]["commit"]


def test_nothing_is_written(lost):
    before = (git(lost.repo, "for-each-ref"), git(lost.repo, "status", "--porcelain"))
    gate(lost)
    assert (git(lost.repo, "for-each-ref"), git(lost.repo, "status", "--porcelain")) == before
