"""`stackctl probe`, and `verify --python`: the commands as a person runs them."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from stackctl.cli.main import cli
from tests.probes.environments import venv
from tests.support import commit_files, git, repository_of, write_files

STACK = {
    "stack.toml": 'name = "s"\n',
    "entries/001-one/entry.toml": """number = 1
title = "One"
disposition = "permanent"
reason = "r"
[probes]
active = ["fi"]
[[plant]]
id = "a"
kind = "statement"
host = "sglang.a:go"
end = true
code = "ours()"
""",
    "checks/probes/fi.toml": 'kind = "distribution"\ntitle = "FlashInfer 0.7.1"\nname = "flashinfer-python"\nversions = ">=0.7.1"\n',
}


@pytest.fixture
def stack(tmp_path, monkeypatch):
    monkeypatch.setenv("STACKCTL_CACHE", str(tmp_path / "cache"))
    write_files(tmp_path / "stack", STACK)
    return str(tmp_path / "stack")


def run(*words: object):
    return CliRunner().invoke(cli, [str(word) for word in words], standalone_mode=False)


def test_probe_says_what_changed_since_the_last_restart(stack, tmp_path):
    old, new = (venv(tmp_path / name, flashinfer_python=name) for name in ("0.7.0", "0.7.1"))
    first = run("--stack", stack, "probe", "--python", old, "--save", tmp_path / "answers.json")
    assert first.return_value == 0 and "inert      entry 1: no: FlashInfer 0.7.1" in first.stdout
    second = run("--stack", stack, "probe", "--python", new, "--since", tmp_path / "answers.json")
    assert "active     entry 1: yes" in second.stdout
    assert (
        "changed    probe fi: absent -> present 0.7.1" in second.stdout
        and "changed    entry 1: inert -> active" in second.stdout
    )
    table = json.loads(
        run("--stack", stack, "probe", "--python", new, "--since", tmp_path / "answers.json", "--format", "json").stdout
    )
    assert table["schema"] == 1 and table["command"] == "probe" and len(table["summary"]["changed"]) == 2
    assert "| 1 | One |" in run("--stack", stack, "probe", "--python", new, "--format", "md").stdout


def test_a_broken_environment_is_exit_code_2(stack, tmp_path):
    done = run("--stack", stack, "probe", "--python", tmp_path / "gone/bin/python")
    assert done.return_value == 2 and "not-judged entry 1" in done.stdout


def test_verify_calls_the_entry_inert(stack, tmp_path):
    files = {
        "python/sglang/version.py": '__version__ = "0.5.23"\n',
        "python/sglang/a.py": "def go():\n    pass\n    ours()\n",
    }
    repository = repository_of(tmp_path / "fork", files)
    python = venv(tmp_path / "env", flashinfer_python="0.7.0")
    words = ["--stack", stack, "verify", "--repo", repository.path, "--format", "json"]
    verdict = [json.loads(run(*words, *more).stdout)["entries"][0]["kind"] for more in ([], ["--python", python])]
    assert verdict == ["whole", "inert"]
    commit_files(repository.path, {"python/sglang/a.py": "def go():\n    pass\n"}, "lost")
    done = run(*words, "--python", python)
    assert json.loads(done.stdout)["entries"][0]["kind"] == "absent" and done.return_value == 1
    assert git(repository.path, "status", "--porcelain") == ""
