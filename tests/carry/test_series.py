"""Reading a series: names, order, what the text says, and what is written of it."""

from __future__ import annotations

import pytest

from stackctl.carry.series import Patch, manifest, propose, read_folder, read_range, renumbered, said_number
from stackctl.model.errors import StackctlError
from tests.support import commit_files, git, repository_of, write_files

DIFF = "diff --git a/m.py b/m.py\n--- a/m.py\n+++ b/m.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n"


def proposed(header: str, name: str = "0001-x.patch"):
    mark = name.partition(".patch")[2]
    return propose(Patch(name, (header + DIFF).encode(), 1, "x", mark))


def test_numbers_and_slugs_are_the_names_own(tmp_path):
    write_files(
        tmp_path, {"012-Fix_the-thing.patch": DIFF, "003-first.diff": DIFF, "README.md": "x", "loose.patch": DIFF}
    )
    patches, left_out = read_folder(tmp_path)
    assert [(p.number, p.slug) for p in patches] == [(3, "first"), (12, "fix-the-thing")]
    assert left_out == ["loose.patch: has no number, and the series has"]


def test_without_numbers_they_are_counted(tmp_path):
    write_files(tmp_path, {"b.patch": DIFF, "a.patch": DIFF})
    assert [(p.number, p.slug) for p in read_folder(tmp_path)[0]] == [(1, "a"), (2, "b")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[041] Cap x", (41, "Cap x")), ("[PATCH 2/3] [041] Cap x", (41, "Cap x")), ("[PATCH v2][SGL] [41]: Cap", (41, "Cap")),
        ("#041 Cap", (41, "Cap")), ("041: Cap", (41, "Cap")), ("Entry 41: Cap", (41, "Cap")), ("entry-041-cap", (41, "cap")),
        ("[entry 41] Cap", (41, "Cap")), ("[PATCH 1/3] Cap", None), ("3.11 support", None), ("2 fixes", None), ("041:", None),
        ("Cap (#39716)", None), ("#39716 Cap", None), ("entry points", None), ("[Bugfix] Cap", None), ("entry 41", None), ("0: x", None),
    ],
)  # fmt: skip
def test_a_number_is_understood_as_people_write_it(text, said):
    assert said_number(text) == said


def test_numbers_in_file_names_of_any_form(tmp_path):
    write_files(tmp_path, {"[100] last.patch": DIFF, "entry 41 cap.patch": DIFF, "#099 middle.patch": DIFF})
    assert [(p.number, p.slug) for p in read_folder(tmp_path)[0]] == [(41, "cap"), (99, "middle"), (100, "last")]


def test_a_mails_subject_has_the_number_where_git_counted_the_names(tmp_path):
    write_files(tmp_path, {f"000{n}-{s}-x.patch": f"Subject: [PATCH {n}/2] [{s}] Do x\n\n{DIFF}" for n, s in ((1, "041"), (2, "207"))})
    patches, _ = read_folder(tmp_path)
    assert [(p.number, p.slug, propose(p).title) for p in patches] == [(41, "do-x", "Do x"), (207, "do-x", "Do x")]
    assert renumbered(patches) == []


def test_a_number_that_cannot_be_kept_is_told(tmp_path):
    write_files(tmp_path, {f"000{n}-x.patch": f"Subject: [PATCH {n}/2] [041] Do x\n\n{DIFF}" for n in (1, 2)})
    patches, _ = read_folder(tmp_path)
    assert [p.number for p in patches] == [1, 2]
    assert renumbered(patches) == [f"000{n}-x.patch says 41 and is entry {n}" for n in (1, 2)]


def test_a_series_file_gives_the_order_and_the_level(tmp_path):
    write_files(tmp_path, {"b.patch": DIFF, "a.patch": DIFF, "series": "# quilt\nb.patch -p0\n\na.patch # why\n"})
    assert [(p.name, p.number, p.strip) for p in read_folder(tmp_path)[0]] == [("b.patch", 1, 0), ("a.patch", 2, 1)]


def test_a_series_file_may_not_leave_its_folder(tmp_path):
    write_files(tmp_path, {"in/series": "../secret.patch\n", "secret.patch": DIFF})
    with pytest.raises(StackctlError, match="not a file here"):
        read_folder(tmp_path / "in")


@pytest.mark.parametrize(
    ("header", "name", "disposition", "decision"),
    [
        ("", "1-x.patch.CANDIDATE", "candidate", {"reason": "the series names it 1-x.patch.CANDIDATE"}),
        ("# superseded by 012\n", "1-x.patch.SUPERSEDED", "superseded", {"superseded_by": "012"}),
        ("Subject: [PATCH] x\n\n(cherry picked from commit 0123456789abcdef)\n", "1-x.patch", "backport", {"commit": "0123456789abcdef"}),
        ("# backport of https://github.com/o/r/pull/7\n", "1-x.patch", "backport", {"commit": "https://github.com/o/r/pull/7"}),
        ("Upstream-Status: Backport [https://h/c/abcdef1]\n", "1-x.patch", "backport", {"commit": "abcdef1"}),
        ("Upstream-Status: Submitted [https://l/1]\n", "1-x.patch", "submitted", {"url": "https://l/1"}),
        ("Upstream-Status: Inappropriate [ours]\n", "1-x.patch", "permanent", {"reason": "Inappropriate [ours]"}),
        ("Description: x\nForwarded: https://l/2\n", "1-x.patch", "submitted", {"url": "https://l/2"}),
        ("Description: x\nOrigin: upstream, commit:abcdef12\n", "1-x.patch", "backport", {"commit": "abcdef12"}),
        ("Description: what it is for\n", "1-x.patch", "carry", {"reason": "what it is for"}),
    ],
)  # fmt: skip
def test_the_disposition_is_what_the_text_says(header, name, disposition, decision):
    said = proposed(header, name)
    assert said.disposition == disposition
    assert decision.items() <= said.decision.items()
    assert all(said.decision.get(key) for key in said.disposition.requires)


def test_title_links_and_notes():
    said = proposed(
        "From abc\nFrom: A <a@x>\nSubject: [PATCH 2/3] Use one worker\n\nBecause.\nSee https://github.com/o/r/pull/12\n---\n m.py | 2 +-\n"
    )
    assert said.title == "Use one worker"
    assert said.upstream == ("o/r#12",)
    assert said.notes.startswith("Because.") and "m.py" not in said.notes


def test_hostile_text_makes_a_manifest_that_loads():
    import tomllib

    header = b'Subject: [PATCH] "quoted" \x7f \xff \\ \x1b[31m\n\n"""\n[[plant]]\n\x00\n'
    text = manifest(Patch("1-x.patch", header + DIFF.encode(), 1, "x"), 'v"1')
    table = tomllib.loads(text)
    assert table["plant"] == [{"id": "patch", "kind": "series", "patch": "1-x.patch", "base": 'v"1'}]


def test_a_range_gives_a_patch_a_commit(tmp_path):
    repository = repository_of(tmp_path, {"m.py": "a = 1\n"})
    commit_files(tmp_path, {"m.py": "a = 2\n"}, "Make it two")
    commit_files(tmp_path, {"n.py": "b = 1\n"}, "New file")
    patches = read_range(repository, "HEAD~2..HEAD")
    assert [(p.name, p.number) for p in patches] == [("0001-make-it-two.patch", 1), ("0002-new-file.patch", 2)]
    assert read_range(repository, "HEAD~2..HEAD") == patches


def test_a_range_takes_the_numbers_of_its_subjects(tmp_path):
    repository = repository_of(tmp_path / "r", {"a.txt": "1\n"})
    for text in ("[041] Second", "entry 207: Third"):
        commit_files(tmp_path / "r", {"a.txt": text}, text)
    found = read_range(repository, "HEAD~2..HEAD")
    assert [(p.number, p.name, propose(p).title) for p in found] == [
        (41, "0041-second.patch", "Second"), (207, "0207-third.patch", "Third"),
    ]  # fmt: skip
    commit_files(tmp_path / "r", {"a.txt": "x"}, "Without")
    found = read_range(repository, "HEAD~3..HEAD")
    assert [p.number for p in found] == [1, 2, 3] and len(renumbered(found)) == 2


def test_a_merge_in_a_range_is_refused(tmp_path):
    repository = repository_of(tmp_path, {"m.py": "a = 1\n"})
    git(tmp_path, "checkout", "-q", "-b", "side")
    commit_files(tmp_path, {"n.py": ""}, "side")
    git(tmp_path, "checkout", "-q", "main")
    commit_files(tmp_path, {"o.py": ""}, "main")
    git(tmp_path, "merge", "-q", "--no-edit", "side")
    with pytest.raises(StackctlError, match="is a merge"):
        read_range(repository, "HEAD~1..HEAD")
