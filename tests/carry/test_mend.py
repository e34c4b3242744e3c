"""`replant --merge`: halves that no entry declares are put back, with a stack and without one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import commit_files, git, repository_of

BASE = "import json\n\n\nclass Router:\n    def send(self, request):\n        return self.post(request)\n\n    def post(self, request):\n        return json.dumps(request)\n"
OURS = BASE.replace(
    "        return self.post(request)\n", "        code = self.post(request)\n        self.note(code)\n        return code\n"
).replace("    def post", "    def note(self, code):\n        self.seen = code\n\n    def post")
THEIRS = BASE.replace("json.dumps(request)", "json.dumps(request, sort_keys=True)")
# The definition stays and its call goes: Git called this merge clean.
MERGED = OURS.replace("        self.note(code)\n", "").replace("json.dumps(request)", "json.dumps(request, sort_keys=True)")


@pytest.fixture
def merged(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    repository_of(folder, {"router.py": BASE})
    git(folder, "branch", "upstream")
    commit_files(folder, {"router.py": OURS}, "note what was sent")
    git(folder, "checkout", "--quiet", "upstream")
    commit_files(folder, {"router.py": THEIRS}, "sort keys")
    git(folder, "checkout", "--quiet", "main")
    git(folder, "merge", "--quiet", "--no-commit", "upstream")
    (folder / "router.py").write_text(MERGED)
    git(folder, "commit", "--quiet", "--all", "--message", "merge")
    git(folder, "branch", "fork")
    return folder


def stackctl(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "stackctl", *arguments], cwd=folder, capture_output=True, text=True, check=False)


def test_a_lost_call_is_put_back_without_a_stack(merged: Path) -> None:
    audit = stackctl(merged, "audit", "--repo", ".", "--merge", "fork", "--format", "json")
    assert audit.returncode == 1, audit.stderr
    assert [f["kind"] for f in json.loads(audit.stdout)["findings"] if f["level"] == "error"] == ["lost"]
    done = stackctl(merged, "replant", "--repo", ".", "--at", "fork", "--merge", "fork")
    assert (done.returncode, "1 file mended" in done.stdout) == (0, True), done.stdout + done.stderr
    assert git(merged, "show", "fork:router.py") + "\n" == OURS.replace("dumps(request)", "dumps(request, sort_keys=True)")
    assert "Stack-Merge: " in git(merged, "log", "-1", "--format=%B", "fork")
    again = stackctl(merged, "replant", "--repo", ".", "--at", "fork", "--merge", "fork~1")
    assert (again.returncode, again.stdout.splitlines()[-1]) == (0, "branch fork: nothing to do")


def test_a_dry_run_writes_nothing(merged: Path) -> None:
    before = git(merged, "rev-parse", "fork")
    done = stackctl(merged, "replant", "--repo", ".", "--at", "fork", "--merge", "fork", "--dry-run")
    assert "router.py" in done.stdout
    assert git(merged, "rev-parse", "fork") == before


def test_no_merge_is_a_clear_error(merged: Path) -> None:
    done = stackctl(merged, "replant", "--repo", ".", "--at", "fork", "--merge", "fork~1")
    assert done.returncode == 2
    assert "has 1 parents, not two" in done.stderr


LIMIT = "def limit(x):\n    low = first(x)\n    high = last(x)\n    return low, high\n\n\ndef first(x):\n    return x\n\n\ndef last(x):\n    return x\n"


@pytest.mark.parametrize("between", ["", "    print(cap)\n"], ids=["unread between", "read between"])
def test_ours_is_not_put_back_below_upstreams_assignment_of_the_same_name(tmp_path: Path, between: str) -> None:
    """Each was there as often as it should be, replant was clean, and the last one won."""
    folder = tmp_path / "repo"
    theirs = LIMIT.replace("    high = last(x)\n", f"    cap = low + 2\n{between}    high = last(x)\n")
    ours = LIMIT.replace("    return low, high\n", "    cap = high + 1\n    return low, high, cap\n")
    merged = theirs.replace("return low, high\n", "return low, high, cap\n")
    repository_of(folder, {"limit.py": LIMIT})
    git(folder, "branch", "upstream")
    commit_files(folder, {"limit.py": ours, "more.py": "A = 1\n"}, "cap it")
    git(folder, "checkout", "--quiet", "upstream")
    commit_files(folder, {"limit.py": theirs}, "cap it too")
    git(folder, "checkout", "--quiet", "main")
    git(folder, "merge", "--quiet", "-X", "theirs", "--no-commit", "upstream")
    (folder / "limit.py").write_text(merged)
    (folder / "more.py").unlink()
    git(folder, "commit", "--quiet", "--all", "--message", "merge")
    git(folder, "branch", "fork")
    done = stackctl(folder, "replant", "--repo", ".", "--at", "fork", "--merge", "fork")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "`cap` " in done.stdout and "not put back" in done.stdout, done.stdout
    assert git(folder, "show", "fork:limit.py") + "\n" == merged
    assert git(folder, "show", "fork:more.py") == "A = 1", "what harms nothing is put back"
