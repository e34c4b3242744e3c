"""Judging point 7: whatever is thrown at the program, a clear message, nothing lost, no traceback."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.cli.hostile import ENTRIES, HOST, SERVING, UPSTREAM, Bench, bench
from tests.support import git, write_files

BRANCH = "stack-0.5.23"


@pytest.fixture
def at(tmp_path) -> Bench:
    return bench(tmp_path)


def planted(at: Bench, path: str = HOST, branch: str = BRANCH) -> bytes:
    return subprocess.run(["git", "show", f"{branch}:{path}"], cwd=at.repo, capture_output=True, check=True).stdout


# Files of upstream's


def test_syntax_error_upstream_leaves_the_unit_out_and_keeps_the_rest(at):
    at.commit({HOST: SERVING.replace("async def handle", "asink def handle")})
    done = at.apply()
    assert done.code == 1
    assert f"{HOST}:5: unparsable 1/import" in done.out
    rows = {row["plant"]: row["kind"] for row in at.apply("--format", "json").json["ledger"]}
    assert rows == {"worker": "undecided", "import": "unparsable", "convert": "undecided", "data": "intact", "start": "unparsable"}
    assert planted(at) == SERVING.replace("async def handle", "asink def handle").encode()
    verified = at.verify("--at", BRANCH)
    assert verified.code == 1 and "does not parse" in verified.out


@pytest.mark.parametrize("data", [
    SERVING.replace("\n", "\r\n").encode(), b"\xef\xbb\xbf" + SERVING.encode(), SERVING.replace("    ", "\t").encode(),
    SERVING.replace("\n\n\n", "\n\x0c\n\n").encode(), SERVING.replace("\n", "\r\n", 5).encode(),
    ("# coding: latin-1\n" + SERVING.replace("# convert", "# caf\xe9")).encode("latin-1"), SERVING.rstrip("\n").encode(),
], ids=["crlf", "bom", "tabs", "form feeds", "mixed", "latin-1", "no newline at the end"])  # fmt: skip
def test_other_layouts_are_planted_and_kept(at, data):
    at.commit({HOST: data})
    assert at.apply().code == 0
    after = planted(at)
    gone = [line for line in data.splitlines(keepends=True) if line not in after.splitlines(keepends=True)]
    assert [line.strip() for line in gone] in ([b"return self.convert(request)"], [b"return self.convert(request)", b"setup()"])
    assert at.verify("--at", BRANCH).code == 0
    assert at.apply().out.endswith("nothing to do\n")


@pytest.mark.parametrize(("data", "message"), [
    (SERVING.replace("# convert", "# caf\xe9").encode("latin-1"), "cannot be decoded"),
    (b"# coding: utf-7\nx = '+AGE-'\n", "does not give the same bytes back"),
    (b"# coding: no-such\n", "unknown encoding"),
    (SERVING.encode() + b"\0", "null bytes"),
    (b"x = " + b"(" * 5000 + b")" * 5000, "does not parse"),
    (b"-" * 100_000 + b"1\n", "does not parse"),
], ids=["not utf-8", "utf-7", "unknown coding", "null byte", "nested brackets", "nested signs"])  # fmt: skip
def test_what_python_cannot_read_is_a_finding(at, data, message):
    at.commit({HOST: data})
    before = at.refs()
    done = at.verify("--at", "v0.5.23")
    assert done.code == 1 and message in done.out and HOST in done.out
    assert at.refs() == before
    assert at.apply().code == 1
    assert planted(at) == data


def test_a_letter_that_the_files_encoding_lacks(tmp_path):
    entries = dict(ENTRIES)
    entries["entries/002-start/entry.toml"] = ENTRIES["entries/002-start/entry.toml"].replace("ours()", "ours('\\u4e2d')").replace("code = \"", "code = \"")
    at = bench(tmp_path, {**UPSTREAM, HOST: f"# coding: latin-1\n{SERVING}"}, entries)
    done = at.apply()
    assert done.code == 1 and "is in iso-8859-1, which has no" in done.out


def test_a_huge_file(at):
    at.commit({"big.bin": os.urandom(1 << 20) * 16, HOST: SERVING + "X = [\n" + "    1,\n" * 20_000 + "]\n"})
    assert at.apply().code == 0
    assert len(planted(at, "big.bin")) == 16 << 20


def test_a_host_that_is_a_symlink_to_outside(at):
    secret = at.folder / "secret.py"
    secret.write_text(SERVING)
    (at.repo / HOST).unlink()
    (at.repo / HOST).symlink_to(secret)
    at.commit({})
    done = at.apply()
    assert done.code == 1 and "host-gone" in done.out and HOST in done.out
    assert secret.read_text() == SERVING
    assert at.verify("--tree", at.repo).code == 1


def test_a_folder_that_is_a_symlink_to_outside(at):
    outside = at.folder / "outside"
    (at.repo / "python/sglang/srt").rename(outside)
    (at.repo / "python/sglang/srt").symlink_to(outside)
    at.commit({})
    before = sorted(outside.rglob("*"))
    done = at.apply()
    assert done.code == 1 and "is a file or a symlink here" in done.out
    assert at.verify("--tree", at.repo).code == 1
    assert sorted(outside.rglob("*")) == before


def test_our_file_where_upstream_has_a_folder(at):
    at.commit({"python/sglang/srt/worker.py/inside.txt": "theirs"})
    done = at.apply()
    assert done.code == 1 and "python/sglang/srt/worker.py is a folder here" in done.out
    assert planted(at, "python/sglang/srt/worker.py/inside.txt") == b"theirs"


NAMES = [b"a b.txt", b"new\nline.py", b"\xff\xfe.py", b"tab\t.py", b"quote\".py", b"-dash.py", b"\x1b[31mred.py"]


def test_odd_file_names_are_kept(at):
    for name in NAMES:
        (Path(os.fsdecode(os.fsencode(at.repo) + b"/python/sglang/" + name))).write_bytes(b"run_in_executor(None, self.f)\n")
    at.commit({})
    assert at.apply().code == 0
    listed = subprocess.run(["git", "ls-tree", "-r", "-z", "--name-only", BRANCH], cwd=at.repo, capture_output=True, check=True).stdout.split(b"\0")
    assert {b"python/sglang/" + name for name in NAMES} <= set(listed)


@pytest.mark.parametrize("form", ["text", "json", "md"])
def test_findings_in_files_of_odd_names(tmp_path, form):
    tombstone = '\n[[plant]]\nid = "old"\nkind = "tombstone"\ntext = "run_in_executor(None, self.f"\n'
    entries = {**ENTRIES, "entries/002-start/entry.toml": ENTRIES["entries/002-start/entry.toml"] + tombstone}
    for index, name in enumerate(name for name in NAMES if name.endswith(b".py")):
        at = bench(tmp_path / str(index), entries=entries)
        (Path(os.fsdecode(os.fsencode(at.repo) + b"/python/sglang/" + name))).write_bytes(b"run_in_executor(None, self.f)\n")
        at.commit({})
        for place in (["--at", "v0.5.23"], ["--tree", at.repo]):
            done = at.verify(*place, "--format", form)
            assert done.code == 1 and "resurrected" in done.out
            assert "\x1b[31m" not in done.out


def test_a_patched_file_with_an_odd_name(tmp_path):
    patch = '--- "a/n\\303\\257 x\\ny.json"\n+++ "b/n\\303\\257 x\\ny.json"\n' + ENTRIES["patches/data.patch"].split("\n", 2)[2]
    at = bench(tmp_path, {**UPSTREAM, "n\xef x\ny.json": UPSTREAM["data.json"]}, {**ENTRIES, "patches/data.patch": patch})
    assert at.apply().code == 0
    assert b'"ours": 1' in planted(at, "n\xef x\ny.json")
    assert at.apply("--branch", "dry", "--dry-run").code == 0


# The repository


def test_a_branch_that_is_checked_out_with_changes(at):
    at.git("checkout", "--quiet", "-b", BRANCH)
    (at.repo / "data.json").write_text("mine\n")
    before = at.refs()
    for more in ([], ["--checkout"], ["--dry-run"]):
        done = at.apply(*more)
        assert done.code == 2 and f"branch {BRANCH} is checked out with changes: data.json" in done.err and "hint: " in done.err
    assert at.refs() == before and (at.repo / "data.json").read_text() == "mine\n"
    assert at.git("status", "--porcelain") == "M data.json"


def test_a_staged_change_counts_too(at):
    at.git("checkout", "--quiet", "-b", BRANCH)
    write_files(at.repo, {"new.txt": "staged"})
    at.git("add", "new.txt")
    assert "is checked out with changes: new.txt" in at.apply("--checkout").err


def test_a_branch_that_is_checked_out_and_clean(at):
    at.git("checkout", "--quiet", "-b", BRANCH)
    refused = at.apply()
    assert refused.code == 2 and "say --checkout" in refused.err
    assert at.apply("--checkout").code == 0
    assert at.git("status", "--porcelain") == ""
    assert (at.repo / HOST).read_bytes() == planted(at)
    assert (at.repo / "python/sglang/srt/worker.py").is_file()
    assert at.git("diff", "HEAD", "--stat") == "" and not list(at.repo.rglob(".stackctl*"))
    assert at.verify().code == 0 and at.verify("--tree", at.repo).code == 0


def test_a_branch_checked_out_in_another_worktree(at):
    at.git("worktree", "add", "--quiet", "-b", BRANCH, str(at.folder / "other\ntree"))
    assert at.apply().code == 2
    assert at.apply("--checkout").code == 0
    assert git(at.folder / "other\ntree", "status", "--porcelain") == ""
    assert at.git("status", "--porcelain") == ""


def test_an_unborn_branch_that_is_checked_out(at):
    at.git("checkout", "--quiet", "--orphan", BRANCH)
    at.git("rm", "-rfq", ".")
    assert at.apply("--checkout").code == 0
    assert at.git("status", "--porcelain") == "" and (at.repo / HOST).read_bytes() == planted(at)


def test_an_untracked_file_in_the_way_is_not_overwritten(at):
    at.git("checkout", "--quiet", "-b", BRANCH)
    write_files(at.repo, {"python/sglang/srt/worker.py": "mine", ".git/info/exclude": "worker.py\n"})
    before = at.refs()
    done = at.apply("--checkout")
    assert done.code == 2 and "python/sglang/srt/worker.py is in the way, which Git does not know" in done.err
    assert (at.repo / "python/sglang/srt/worker.py").read_text() == "mine" and at.refs() == before


def test_an_untracked_folder_that_is_a_symlink_is_not_written_through(tmp_path):
    entry = ENTRIES["entries/001-worker/entry.toml"].replace('path = "python/sglang/srt/worker.py"', 'path = "extra/worker.py"')
    entries = {**ENTRIES, "entries/001-worker/entry.toml": entry, "entries/001-worker/files/extra/worker.py": "X = 1\n"}
    del entries["entries/001-worker/files/python/sglang/srt/worker.py"]
    at = bench(tmp_path, entries=entries)
    at.git("checkout", "--quiet", "-b", BRANCH)
    (tmp_path / "outside").mkdir()
    (at.repo / "extra").symlink_to(tmp_path / "outside")
    done = at.apply("--checkout")
    assert done.code == 2 and "extra is in the way" in done.err
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_second_run_at_the_same_time_is_told(at):
    assert at.apply().code == 0
    at.git("update-ref", "-d", f"refs/heads/{BRANCH}")
    before = at.refs()
    with open(at.repo / ".git/stackctl/lock", "a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        done = at.apply()
        assert done.code == 2 and "another stackctl is at work in this repository" in done.err and "hint: wait" in done.err
        assert at.run("replant", "--repo", at.repo, "--at", "main").code == 2
        assert at.verify("--at", "v0.5.23").code == 1  # reading needs no lock
    assert at.refs() == before
    assert at.apply().code == 0


def test_an_empty_repository(at, tmp_path):
    git(tmp_path, "init", "--quiet", "empty")
    for words in (["verify", "--repo", tmp_path / "empty"], ["apply", "--repo", tmp_path / "empty", "--onto", "v0.5.23"]):
        done = at.run(*words)
        assert done.code == 2 and "no commit named" in done.err and "hint: " in done.err


def test_unborn_head(at):
    at.git("checkout", "--quiet", "--orphan", "fresh")
    assert "no commit named 'HEAD'" in at.verify().err
    assert at.apply().code == 0


def test_shallow_clone(at, tmp_path):
    at.commit({"more.txt": "x"})
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{at.repo}", "shallow")
    shallow = Bench(tmp_path, at.stack, tmp_path / "shallow")
    assert shallow.apply(onto="HEAD").code == 0
    assert shallow.verify("--at", BRANCH).code == 0
    git(shallow.repo, "fsck")


def test_sha256_repository(at, tmp_path):
    git(tmp_path, "init", "--quiet", "--object-format=sha256", "--initial-branch=main", "sha")
    other = Bench(tmp_path, at.stack, tmp_path / "sha")
    other.commit(UPSTREAM)
    assert other.apply().code == 0
    assert other.verify("--at", BRANCH).code == 0
    assert other.apply().out.endswith("nothing to do\n")
    git(other.repo, "checkout", "--quiet", "-b", "mine", "v0.5.23")
    assert other.apply("--branch", "mine", "--checkout").code == 0
    assert git(other.repo, "status", "--porcelain") == ""


def test_bare_repository(at, tmp_path):
    git(tmp_path, "clone", "--quiet", "--bare", str(at.repo), "bare.git")
    bare = Bench(tmp_path, at.stack, tmp_path / "bare.git")
    assert bare.apply().code == 0
    assert bare.verify("--at", BRANCH).code == 0


def test_submodule_entries(at):
    commit = at.git("rev-parse", "HEAD")
    at.git("update-index", "--add", "--cacheinfo", f"160000,{commit},python/sglang/srt/sub")
    at.git("update-index", "--add", "--cacheinfo", f"160000,{commit},python/sglang/srt/worker.py")
    at.git("commit", "--quiet", "--message", "submodules")
    at.git("tag", "--force", "v0.5.23")
    done = at.apply()
    assert done.code == 1 and "is a symlink or a submodule; it is never written through" in done.out
    assert f"160000 commit {commit}\tpython/sglang/srt/sub" in at.git("ls-tree", "-r", BRANCH)


@pytest.mark.parametrize("name", ["team/x/y", "a.b", "été"])
def test_branch_names_with_slashes_and_letters(at, name):
    assert at.apply("--branch", name).code == 0
    assert at.git("rev-parse", f"refs/heads/{name}")


@pytest.mark.parametrize("name", ["-x", "--all", "a..b", "a b", "x.lock", "@{-1}", "HEAD", "a/", "", "a~1", "a\nb"])
def test_what_is_no_branch_name(at, name):
    before = at.refs()
    done = at.apply(f"--branch={name}")
    if name:
        assert done.code == 2 and f"{name!r} is not a branch name" in done.err
    assert at.refs() == before or not name


def test_a_branch_name_of_bytes_that_are_no_text(at):
    assert at.apply("--branch", b"b\xff").code == 0
    refs = subprocess.run(["git", "for-each-ref"], cwd=at.repo, capture_output=True, check=True).stdout
    assert b"refs/heads/b\xff\n" in refs


def test_a_branch_below_another_branch(at):
    at.git("branch", "team")
    done = at.apply("--branch", "team/x")
    assert done.code == 2 and "cannot lock ref" in done.err and "'refs/heads/team' exists" in done.err
    assert at.apply("--branch", "other").code == 0


@pytest.mark.parametrize("onto", ["nope", "-x", "--all", "HEAD^{tree}", "HEAD:data.json", "", "a\nb", "v0.5.23~9", "0" * 40])
def test_onto_that_is_no_commit(at, onto):
    before = at.refs()
    done = at.run("apply", "--repo", at.repo, f"--onto={onto}")
    assert done.code == 2 and ("no commit named" in done.err or "is not a Git reference" in done.err)
    assert at.refs() == before


def test_a_branch_that_stands_elsewhere(at):
    at.git("branch", BRANCH)
    at.git("checkout", "--quiet", "--orphan", "other")
    at.commit({"x": "y"}, tag="other-tag")
    done = at.apply("--release", "0.5.23", onto="other-tag")
    assert done.code == 2 and "does not stand on other-tag" in done.err


HOOKS = ("pre-commit", "post-commit", "reference-transaction", "post-checkout", "post-index-change", "commit-msg", "prepare-commit-msg",
         "post-update", "pre-receive", "post-rewrite", "fsmonitor-watchman", "pre-auto-gc")  # fmt: skip


def arm(at: Bench) -> Path:
    """Every hook and every command of the repository's configuration writes into one file; nothing may."""
    proof = at.folder / "proof"
    script = at.repo / ".git" / "evil"
    script.write_text(f"#!/bin/sh\necho $0 $* >> '{proof}'\ncat\n")
    script.chmod(0o755)
    for name in HOOKS:
        (at.repo / ".git" / "hooks").mkdir(exist_ok=True)
        (at.repo / ".git" / "hooks" / name).symlink_to(script)
    git_config = {
        "core.fsmonitor": script, "core.hooksPath": at.repo / ".git" / "hooks", "core.sshCommand": script, "core.pager": script, "core.editor": script,
        "core.askPass": script, "core.gitProxy": script, "diff.external": script, "commit.gpgSign": "true", "gpg.program": script, "log.showSignature": "true",
        "tag.gpgSign": "true", "diff.evil.textconv": script, "diff.evil.command": script, "merge.evil.driver": script, "interactive.diffFilter": script,
        "sequence.editor": script, "credential.helper": script, "core.alternateRefsCommand": script, "uploadpack.packObjectsHook": script,
    }  # fmt: skip
    for name in ("evil", "e v i l", "e=v.il", "Evil"):
        git_config |= {f"filter.{name}.{key}": script for key in ("clean", "smudge", "process")} | {f"filter.{name}.required": "true"}
    for key, value in git_config.items():
        at.git("config", key, str(value))
    (at.repo / ".git" / "info").mkdir(exist_ok=True)
    names = ["evil", "Evil"]
    rows = [f"{path} filter={names[index % 2]} diff=evil merge=evil\n" for index, path in enumerate(UPSTREAM)]
    (at.repo / ".git" / "info" / "attributes").write_text("".join(rows))
    return proof


def test_no_hook_filter_or_command_of_the_repository_runs(at):
    at.git("checkout", "--quiet", "-b", BRANCH)
    proof = arm(at)
    for path in UPSTREAM:  # other times than the index has: status must read the files
        os.utime(at.repo / path, (1, 1))
    assert at.apply("--branch", "other").code == 0
    assert at.apply("--checkout").code == 0
    assert at.verify().code == 0
    assert at.run("replant", "--repo", at.repo, "--at", "other").code == 0
    assert at.verify("--at", "other").code == 0
    assert not proof.exists(), proof.read_text()


@pytest.mark.parametrize("name", ["e v i l", "e=v.il"])
def test_no_filter_of_an_odd_name_runs(at, name):
    """A name that splits on spaces, or at "=", is not switched off by `-c filter.NAME.clean=`."""
    at.git("checkout", "--quiet", "-b", BRANCH)
    proof = arm(at)
    (at.repo / ".git" / "info" / "attributes").unlink()
    (at.repo / ".git" / "info" / "attributes").write_text(f"* \"filter={name}\"\n* filter={name}\n")
    for path in UPSTREAM:
        os.utime(at.repo / path, (1, 1))
    at.apply("--checkout")
    assert not proof.exists(), proof.read_text()


def test_git_variables_of_the_environment_do_not_lead_astray(at, tmp_path):
    other = bench(tmp_path / "other")
    before = other.refs()
    stray = {
        "GIT_DIR": str(other.repo / ".git"), "GIT_WORK_TREE": str(other.repo), "GIT_INDEX_FILE": str(other.repo / ".git/index"),
        "GIT_OBJECT_DIRECTORY": str(other.repo / ".git/objects"), "GIT_CEILING_DIRECTORIES": "/", "GIT_NAMESPACE": "x",
        "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.bare", "GIT_CONFIG_VALUE_0": "true", "GIT_PREFIX": "x/",
    }  # fmt: skip
    assert at.apply(env=stray).code == 0
    assert other.refs() == before
    assert at.git("rev-parse", BRANCH)
    assert at.git("status", "--porcelain") == other.git("status", "--porcelain") == ""


def test_replace_refs_and_grafts_do_not_change_what_is_read(at):
    false = at.commit({HOST: "x = 1\n"}, tag="false")
    at.git("replace", "v0.5.23", false)
    assert at.apply().code == 0


def test_no_identity_is_configured(at):
    assert at.apply().code == 0
    assert at.git("log", "-1", "--format=%an <%ae>", BRANCH) == "stackctl <stackctl@localhost>"
    at.git("config", "user.name", "Me")
    at.git("config", "user.email", "me@example.invalid")
    assert at.apply("--branch", "mine").code == 0
    assert at.git("log", "-1", "--format=%an <%ae>", "mine") == "Me <me@example.invalid>"


def test_a_repository_that_cannot_be_written(at):
    """Root may write anywhere, so a file where the state folder goes stands for a read-only .git."""
    (at.repo / ".git" / "stackctl").write_text("")
    before = at.refs()
    done = at.apply()
    assert done.code == 2 and "cannot write here" in done.err and ".git/stackctl" in done.err
    assert at.verify("--at", "v0.5.23").code == 1  # reading needs nothing
    assert at.apply("--dry-run").code == 0
    assert at.refs() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_git_folder(at):
    folders = [at.repo / ".git", *(path for path in (at.repo / ".git").rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        done = at.apply()
        assert done.code == 2 and "cannot write here" in done.err
        assert at.verify("--at", "v0.5.23").code == 1
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_damaged_repositories(at, tmp_path):
    (at.repo / ".git" / "config").write_text("[core\n")
    assert "bad config line 1" in at.verify().err
    for path, data in (("none", None), ("file", "x"), ("link/.git", "gitdir: /nope\n")):
        if data is not None:
            write_files(tmp_path / "odd", {path: data})
        done = at.run("verify", "--repo", tmp_path / "odd" / path.partition("/")[0])
        assert done.code == 2 and "not a Git repository" in done.err


def test_a_missing_object(at):
    blob = at.git("rev-parse", f"HEAD:{HOST}")
    (at.repo / ".git/objects" / blob[:2] / blob[2:]).unlink()
    before = at.refs()
    for done in (at.verify("--at", "v0.5.23"), at.apply()):
        assert done.code == 2 and f"object {blob} is missing" in done.err and "git fsck" in done.err
    assert at.refs() == before


def test_git_is_not_installed(at):
    done = at.verify("--at", "v0.5.23", env={"PATH": str(at.folder / "nothing")})
    assert done.code == 2 and "Git is not installed" in done.err


def test_a_stale_lock_of_somebody_else_is_named(at):
    at.git("checkout", "--quiet", "-b", BRANCH)
    (at.repo / ".git/index.lock").write_text("")
    done = at.apply("--checkout")
    assert done.code == 2 and "index.lock" in done.err
    (at.repo / ".git/index.lock").unlink()
    assert at.apply("--checkout").code == 0
    assert at.git("status", "--porcelain") == "" and (at.repo / HOST).read_bytes() == planted(at)


# The stack


@pytest.mark.parametrize(("path", "old", "new", "message"), [
    ("entries/001-worker/entry.toml", 'path = "python/sglang/srt/worker.py"', 'path = "../outside.py"', "leaves the tree's root"),
    ("entries/001-worker/entry.toml", 'path = "python/sglang/srt/worker.py"', 'path = ".git/hooks/post-commit"', "leaves the tree's root"),
    ("entries/001-worker/entry.toml", "number = 1", "number = 1\nnumber = 2", "is not TOML"),
    ("patches/data.patch", "b/data.json", "b/../data.json", "leaves the tree's root"),
    ("patches/data.patch", "+  ", "  ", "is not a unified diff"),
])  # fmt: skip
def test_a_stack_with_a_mistake_touches_nothing(at, path, old, new, message):
    write_files(at.stack, {path: ENTRIES[path].replace(old, new)})
    before = at.refs()
    for done in (at.apply(), at.verify(), at.run("list")):
        assert done.code == 2 and message in done.err and "entry.toml:" in done.err
    assert at.refs() == before and not (at.repo / ".git/stackctl").exists()


def test_a_file_of_an_entry_that_goes_while_we_run_is_named(at):
    assert at.run("list").code == 0
    os.chmod(at.stack / "entries/001-worker/files/python/sglang/srt/worker.py", 0)
    assert at.apply().code in (0, 2)
