"""`stackctl upstream`: what is printed where."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from stackctl.cli.common import Settings
from stackctl.cli.upstream import command
from tests.trees.wheels import release, shelve


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.setenv("STACKCTL_CACHE", str(tmp_path / "cache"))
    for version in ("1.0", "1.1"):
        shelve(tmp_path / "cache", release(tmp_path, version), version)
    return lambda *arguments: CliRunner().invoke(command, arguments, obj=Settings(), catch_exceptions=False)


def test_add_goes_to_the_default_repository_and_prints_a_line_a_release(invoke, tmp_path):
    done = invoke("add", "1.1", "1.0")
    assert done.exit_code == 0 and done.stderr == ""
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [(line[0], line[2], line[3]) for line in lines] == [
        ("v1.0", "sglang-1.0-py3-none-any.whl", "added"),
        ("v1.1", "sglang-1.1-py3-none-any.whl", "added"),
    ]
    assert (tmp_path / "cache" / "upstream" / ".git").is_dir()


def test_json_is_one_object(invoke, tmp_path):
    added = json.loads(invoke("add", "1.0", "--repo", str(tmp_path / "r"), "--format", "json").stdout)
    listed = json.loads(invoke("list", "--repo", str(tmp_path / "r"), "--format", "json").stdout)
    assert (added["schema"], added["command"], listed["command"]) == (1, "upstream add", "upstream list")
    assert added["summary"]["releases"][0].pop("new") is True
    assert added["summary"] == listed["summary"]


def test_add_wants_a_version(invoke):
    assert invoke("add").exit_code == 2
