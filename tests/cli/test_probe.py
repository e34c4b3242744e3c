"""`stackctl probe`, and `verify --python`: the commands as a person runs them."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
from click.testing import CliRunner

from stackctl.cli.explain import page_of
from stackctl.cli.main import cli
from stackctl.probes.declared import KINDS, load_probes
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


def test_an_interpreter_that_is_not_there_is_said_even_if_no_probe_asks(stack, tmp_path):
    write_files(tmp_path / "stack", {"checks/probes/fi.toml": 'kind = "flag"\ntitle = "workers"\nflag = "--workers"\n'})
    done = run("--stack", stack, "probe", "--python", tmp_path / "gone/bin/python", "--launch", "serve")
    assert done.return_value == 2 and "there is no interpreter at" in done.stdout and "inert      entry 1" in done.stdout


def test_a_stack_without_probes_says_how_to_write_one(tmp_path, monkeypatch):
    monkeypatch.setenv("STACKCTL_CACHE", str(tmp_path / "cache"))
    write_files(tmp_path / "stack", {"stack.toml": 'name = "s"\n'})
    done = run("--stack", tmp_path / "stack", "probe", "--python", venv(tmp_path / "env"))
    assert done.return_value == 0 and "stackctl explain probe" in done.stdout


def test_the_page_shows_what_is_taken(tmp_path):
    probe, entry = re.findall(r"```toml\n(.*?)```", page_of("probe"), re.DOTALL)
    write_files(tmp_path, {"checks/probes/a.toml": probe})
    assert load_probes(tmp_path)["a"].kind == "parameter" and set(tomllib.loads(entry)["probes"]) == {"active", "inert", "due_again"}
    assert all(f"| {kind} | `" in page_of("probe") for kind in KINDS)


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
