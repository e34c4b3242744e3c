"""Wheels come through pip, for one fixed platform, and are kept."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import time

import pytest

from stackctl.model.errors import StackctlError
from stackctl.trees import download
from stackctl.trees.download import Downloads, NoAnswer, cached_wheel, parse_version, pip_command
from stackctl.trees.pypi import add_releases
from tests.trees.wheels import entry, release, simple_index

V = parse_version


@pytest.fixture(autouse=True)
def served(tmp_path, monkeypatch):
    """A folder that pip finds wheels in, and nothing else."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "served"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("STACKCTL_CACHE", str(tmp_path / "cache"))
    return folder


def fetch(version):
    with Downloads() as downloads:
        return downloads.wheel(V(version)).result()


def tags(repo):
    done = subprocess.run(["git", "for-each-ref"], cwd=repo, capture_output=True, text=True, check=True)
    return done.stdout


def test_the_same_wheel_is_chosen_whatever_runs_here(served):
    for tag in ("cp311-cp311-manylinux_2_34_x86_64", "cp311-cp311-manylinux_2_34_aarch64", "py3-none-any",
                "cp312-cp312-manylinux_2_34_x86_64", "cp311-cp311-macosx_11_0_arm64", "cp311-cp311-win_amd64"):  # fmt: skip
        release(served, "1.0", tags=tag)
    assert fetch("1.0").name == "sglang-1.0-cp311-cp311-manylinux_2_34_x86_64.whl"


@pytest.mark.parametrize(
    "tag", ["py3-none-any", "cp38-abi3-manylinux2014_x86_64", "cp311-abi3-manylinux_2_39_x86_64",
            "py3-none-manylinux1_x86_64", "cp312-cp312-manylinux_2_28_x86_64"],
)  # fmt: skip
def test_other_wheels_do_too(served, tag):
    release(served, "1.0", tags=tag)
    assert fetch("1.0").name == f"sglang-1.0-{tag}.whl"


def test_a_wheel_is_kept_with_its_checksum_and_fetched_again_when_damaged(served):
    release(served, "1.0")
    wheel = fetch("1.0")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert wheel.with_name(f"{wheel.name}.sha256").read_text() == f"{digest}  {wheel.name}\n"
    assert cached_wheel(V("1.0")) == wheel
    assert list(wheel.parents[1].glob(".fetch-*")) == []
    wheel.write_bytes(b"damaged")
    assert cached_wheel(V("1.0")) is None
    assert hashlib.sha256(fetch("1.0").read_bytes()).hexdigest() == digest
    next(served.iterdir()).unlink()
    assert fetch("1.0") == wheel


def test_a_release_that_does_not_exist_names_the_nearest(served, tmp_path):
    for version in ("1.0", "1.1", "1.2", "1.4", "1.5", "1.6", "1.3rc1"):
        release(served, version)
    with pytest.raises(StackctlError) as caught:
        add_releases(tmp_path / "repo", ["1.0", "1.3"])
    assert caught.value.message == "there is no wheel of sglang 1.3"
    assert caught.value.hint == "the nearest are 1.1, 1.2, 1.4, 1.5; the newest is 1.6"
    assert not (tmp_path / "repo").exists()


def test_an_index_without_the_package_is_named():
    with pytest.raises(StackctlError, match="no wheel of sglang"):
        fetch("1.0")


def test_no_network_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(NoAnswer, match="does not answer"):
        add_releases(tmp_path / "repo", ["1.0"])
    assert not (tmp_path / "repo").exists()


def test_a_checksum_other_than_the_indexs_is_refused(served, tmp_path, monkeypatch):
    wheel = release(tmp_path, "1.0")
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", simple_index(tmp_path / "index", {wheel: "0" * 64}))
    with pytest.raises(StackctlError, match="differs from the one that the package index states"):
        add_releases(tmp_path / "repo", ["1.0"])
    assert not (tmp_path / "repo").exists() and cached_wheel(V("1.0")) is None


def test_a_broken_wheel_is_refused_by_pip_already(served):
    (served / "sglang-1.0-py3-none-any.whl").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(StackctlError, match="pip could not fetch it"):
        fetch("1.0")


def test_adding_again_compares_the_checksum(served, tmp_path, monkeypatch):
    repo = tmp_path / "repo"
    release(served, "1.0")
    release(served, "1.1")
    add_releases(repo, ["1.0"])
    before = tags(repo)
    again = add_releases(repo, ["1.0"])
    assert again.notes == ("v1.0 is there already, from the same wheel",) and not again.new
    release(served, "1.0", entry("sglang/more.py"))
    with pytest.raises(StackctlError, match="checksum differs from the one recorded"):
        add_releases(repo, ["1.0", "1.1"])
    assert tags(repo) == before
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    assert "was not compared" in add_releases(repo, ["1.0"]).notes[0]


def test_nothing_below_the_current_folder_is_imported(served, tmp_path, monkeypatch):
    release(served, "1.0")
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "__main__.py").write_text("raise SystemExit('not the real pip')")
    (tmp_path / "logging.py").write_text("raise SystemExit('not the real logging')")
    monkeypatch.chdir(tmp_path)
    assert fetch("1.0").exists()


def without(monkeypatch, *names):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name in names else find(name, *rest))


def test_a_python_without_pip_uses_the_one_it_ships(served, monkeypatch):
    without(monkeypatch, "pip")
    release(served, "1.0")
    assert "pip-" in pip_command()[-1]
    assert fetch("1.0").exists()


def test_a_machine_without_any_pip_is_told_what_to_do(monkeypatch):
    without(monkeypatch, "pip", "ensurepip")
    monkeypatch.setattr(download.sysconfig, "get_config_var", lambda name: None)
    monkeypatch.setattr(download.shutil, "which", lambda name: "/usr/bin/pip3")
    assert pip_command() == ["/usr/bin/pip3"]
    monkeypatch.setattr(download.shutil, "which", lambda name: None)
    with pytest.raises(StackctlError, match="has no pip") as caught:
        fetch("1.0")
    assert "ensurepip" in caught.value.hint


def test_leaving_the_block_ends_what_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "pip_command", lambda: [sys.executable, "-c", "import time; time.sleep(60)"])
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt), Downloads() as downloads:
        jobs = [downloads.wheel(V(f"1.{minor}")) for minor in range(4)]
        time.sleep(0.5)
        raise KeyboardInterrupt
    assert time.monotonic() - start < 20
    assert all(job.cancelled() or job.exception() for job in jobs)
    assert list((tmp_path / "cache" / "wheels").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk is full"),
        ("x\nERROR: 403 Client Error: Forbidden", "pip could not fetch it: 403 Client Error: Forbidden"),
        ("", "it was killed"),
    ],
)
def test_what_pip_says_becomes_one_error(words, message):
    assert message in download._pip_error(V("1.0"), words).message
