"""The restart of the seed's commit: the report says each of its statements, all of them derived."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from stackctl.cli.main import cli
from stackctl.model.verdict import Exit
from stackctl.plants.manifest import load_stack
from stackctl.reports.restart_markdown import render_restart_markdown
from stackctl.reports.sections import changed_entries
from tests.reports.restarting import LAUNCH, UPSTREAM, deployed_stack, earlier, facts_of, make_fork, report_of
from tests.support import commit_files, git, write_files


@pytest.fixture(scope="module")
def fork(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STACKCTL_CACHE", str(tmp_path_factory.mktemp("cache")))
        for role in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{role}_DATE", "2026-10-15T10:00:00+0000")
        yield make_fork(tmp_path_factory.mktemp("fork"))


@pytest.fixture(scope="module")
def told(fork):
    """Every section of the report as {subject: what it says}."""
    report = report_of(facts_of(fork))
    sections = {
        s["id"]: {item["subject"]: (item["tag"], *item["says"], item["command"]) for item in s["items"]}
        for s in report.summary["sections"]
    }
    return report, sections


def test_the_name_and_the_tip(fork, told):
    report, _ = told
    text = render_restart_markdown(report)
    assert text.startswith("# Restart: STACK=qwennext-stack-204-2026-10-15\n")
    assert f"code tip `{fork.repository.resolve('next')[:12]}`" in text
    assert f"deployed `{fork.repository.resolve('deployed')[:12]}`" in text


def test_the_entries_and_their_defaults_default_on_first(told):
    _, sections = told
    entries = sections["entries"]
    assert [subject.split()[0] for subject in entries] == ["201", "202", "200", "203", "204", "156"]
    by_number = {subject[:3]: (subject, *says) for subject, says in entries.items()}
    assert {"added", "default ON, switch SGLANG_PREPROCESS_EXECUTOR"} <= set(by_number["201"])
    assert "sgl-project/sglang#39716" in by_number["201"][0]
    assert "default OFF, switch SGLANG_QSA_CACHE_SHARDS" in by_number["200"] and "#43527" in by_number["200"][0]
    assert "upstream adopted 2 of 2 halves: reconcile, old-helper (0.5.23)" in by_number["202"]
    assert any(
        says.startswith("entry 156 ") and "is dropped for it: upstream's Pool.reconcile" in says
        for says in by_number["202"]
    )
    assert (
        any(says.startswith("exclusive with entry 198 ") for says in by_number["203"])
        and "default OFF, switch SGLANG_LOSSLESS_VERIFY" in by_number["203"]
    )
    assert "whole, 3 halves, tests only" in by_number["204"]
    assert by_number["156"][1:3] == (
        "retired",
        "superseded by entry 202: upstream's Pool.reconcile does the same since 0.5.23",
    )


def test_the_bump_is_resolved_and_wakes_three_entries(told):
    _, sections = told
    bump = sections["environment"]["flashinfer-python 0.7.0 → 0.7.1"]
    assert bump[:4] == (
        "raised",
        "touches entries 162, 163, 164: active",
        "touches entry 165: put-off",
        "resolved: the environment has 0.7.1",
    )
    assert [subject[:3] for subject in sections["woken"]] == ["162", "163", "164"]
    for says in sections["woken"].values():
        assert says[:3] == (
            "active",
            "ACTIVE from this restart on",
            "asked again after flashinfer-python 0.7.0 → 0.7.1",
        )
        assert "history: INERT on 2026-10-09, 2026-10-14, which no longer holds" in says
    assert sections["inert"] == {}


def test_the_skip_holds_because_the_parameter_is_absent(told):
    _, sections = told
    ((subject, says),) = sections["put-off"].items()
    assert subject.startswith("165 ") and "#44115" in subject and says[0] == "put off again"
    assert "asked again after flashinfer-python 0.7.0 → 0.7.1" in says
    assert any(
        "plan() takes uniform_q_len (flashinfer.decode:BatchDecodeWrapper.plan at flashinfer/decode.py:2 takes no uniform_q_len)"
        in each
        for each in says
    )
    assert "put off before: 2026-10-09, 2026-10-14" in says


def test_what_to_watch_what_is_switched_and_the_way_back(fork, told):
    _, sections = told
    assert sections["watch"]["p99 of /v1/models under long prompts"][:2] == (
        "new",
        "threshold: above 50 ms the loop is not free",
    )
    assert sections["watch"]["inter-token latency of all_reduce"][0] == "new"
    assert sections["switches"]["SGLANG_PREPROCESS_EXECUTOR"][1] == "set to on; default on; entry 201"
    assert sections["switches"]["SGLANG_REPLAYSSM"][1] == "not set; default off; entry 198"
    assert "entries 198 and 203 exclude each other: at most one on" in sections["caveats"]
    commands = [says[-1] for says in sections["rollback"].values()]
    assert commands[0] == f"git checkout --detach {fork.repository.resolve('deployed')}"
    assert "flashinfer-python==0.7.0" in commands[1] and "idna==3.1" in commands[1]


def test_the_same_entries_are_inert_on_the_old_environment(fork):
    report = report_of(facts_of(fork, python=fork.old_python, before=None))
    sections = {s["id"]: s["items"] for s in report.summary["sections"]}
    assert [item["entry"] for item in sections["inert"]] == [162, 163, 164]
    assert sections["inert"][0]["says"][:2] == (
        "INERT but correct",
        "wakes when this holds: FlashInfer 0.7.1 or later is installed; FlashInfer has a PCIe-IPC transport",
    )
    assert "not yet: the environment has 0.7.0" in sections["environment"][0]["says"]
    assert {row.number: str(row.verdict) for row in report.entries}["162"] == "inert" and report.exit is Exit.CLEAN


def test_a_broken_environment_is_not_judged(fork):
    report = report_of(facts_of(fork, python=fork.new_python.parent / "gone", before=None))
    assert report.exit is Exit.NOT_JUDGED
    tags = {
        item["subject"][:3]: item["tag"]
        for s in report.summary["sections"]
        if s["id"] == "inert"
        for item in s["items"]
    }
    assert tags == {"162": "not-judged", "163": "not-judged", "164": "not-judged"}


def test_a_switch_is_known_from_the_launch_command_alone(fork):
    for launch, says in ((LAUNCH, "set to on"), ("serve", "not set"), (None, "value not known: --launch tells it")):
        report = report_of(facts_of(fork, python=None, before=None, launch=launch))
        items = {
            i["subject"]: i["says"] for s in report.summary["sections"] if s["id"] == "switches" for i in s["items"]
        }
        assert items["SGLANG_PREPROCESS_EXECUTOR"] == (f"{says}; default on; entry 201",)


def test_no_environment_no_locks(fork):
    report = report_of(facts_of(fork, python=None, launch=None, before=None, locks=None))
    empty = {s["id"]: s["empty"] for s in report.summary["sections"] if not s["items"]}
    assert empty["woken"] == "no environment was asked: --python PATH" and "--locks" in empty["environment"]
    json.dumps(report.to_json())


def test_a_lost_half_is_an_open_finding(fork, tmp_path):
    folder = tmp_path / "work"
    git(fork.repository.path, "worktree", "add", "--quiet", "--detach", str(folder), "next")
    commit_files(
        folder, {"python/sglang/srt/qsa_cache.py": "def build(size):\n    return QsaCache(size, shards=1)\n"}, "lost"
    )
    git(folder, "tag", "broken")
    report = report_of(facts_of(fork, at="broken"))
    (finding,) = next(s["items"] for s in report.summary["sections"] if s["id"] == "findings")
    assert (
        finding["entry"] == 200
        and finding["tag"] == "error"
        and "python/sglang/srt/qsa_cache.py:2 build" in finding["says"]
    )
    assert report.exit is Exit.FINDINGS and report.summary["open"] == {"error": 1}
    changed = next(s["items"] for s in report.summary["sections"] if s["id"] == "entries")
    assert (changed[0]["entry"], changed[0]["tag"]) != (200, "broken")  # it was not there when it was deployed
    head = render_restart_markdown(report).splitlines()[2:6]
    assert "open findings: 1 error" in head[3] and head[1].endswith("SGLang 0.5.22")
    git(fork.repository.path, "worktree", "remove", "--force", str(folder))


def test_what_was_whole_when_it_was_deployed_and_is_not_now_comes_first(fork, tmp_path):
    """A merge that loses a half of an old entry changes none of its commits: nothing but the verdicts tell."""
    folder, path = tmp_path / "work", "python/sglang/srt/comm.py"
    git(fork.repository.path, "worktree", "add", "--quiet", "--detach", str(folder), "next")
    commit_files(folder, {path: UPSTREAM[path]}, "as upstream has it")
    git(folder, "tag", "regressed")
    report = report_of(facts_of(fork, at="regressed"))
    items = next(s["items"] for s in report.summary["sections"] if s["id"] == "entries")
    broken = [item for item in items if item["tag"] == "broken"]
    assert broken and list(items[: len(broken)]) == broken
    assert all(any(text.startswith("whole at the deployed tip, ") for text in item["says"]) for item in broken)
    git(fork.repository.path, "worktree", "remove", "--force", str(folder))


def test_a_manifest_changed_after_planting_is_a_caveat(fork, tmp_path):
    import shutil

    root = tmp_path / "stack"
    shutil.copytree(fork.stack.root, root)
    path = root / "entries/200-qsa-cache-sharding/entry.toml"
    write_files(root, {str(path.relative_to(root)): path.read_text().replace('default = "off"', 'default = "on"')})
    from dataclasses import replace

    report = report_of(facts_of(replace(fork, stack=load_stack(root))))
    caveats = {item["id"] for s in report.summary["sections"] if s["id"] == "caveats" for item in s["items"]}
    assert "stale-200" in caveats


def test_manifests_of_the_stacks_own_history_are_compared(fork, tmp_path):
    """With the stack in a repository of its own, a flipped default is told even where nothing was planted anew."""
    import shutil
    from dataclasses import replace

    root = tmp_path / "home"
    shutil.copytree(deployed_stack(tmp_path).root, root)
    git(root, "init", "--quiet", "--initial-branch=main", ".")
    path = root / "entries/198-replayssm/entry.toml"
    now = path.read_text()
    commit_files(
        root, {"entries/198-replayssm/entry.toml": now.replace('default = "off"', 'default = "on"')}, "deployed"
    )
    git(root, "tag", "deployed-stack")
    shutil.copytree(fork.stack.root, root, dirs_exist_ok=True)
    facts = facts_of(replace(fork, stack=load_stack(root)), stack_since="deployed-stack")
    assert changed_entries(facts)[198] == "changed"
    entries = next(s["items"] for s in report_of(facts).summary["sections"] if s["id"] == "entries")
    assert any("default on → off" in item["says"] for item in entries if item["entry"] == 198)


def test_the_command(fork, tmp_path):
    from stackctl.probes.asking import load_asking, save_asking

    save_asking(earlier(fork), tmp_path / "before.json")
    words = [
        "--stack",
        str(fork.stack.root),
        "report",
        "restart",
        "--repo",
        str(fork.repository.path),
        "--at",
        "next",
        "--since",
        "deployed",
        "--python",
        str(fork.new_python),
        "--launch",
        LAUNCH,
        "--probes-since",
        str(tmp_path / "before.json"),
        "--save-probes",
        str(tmp_path / "after.json"),
        "--locks",
        *map(str, fork.locks),
    ]
    done = {
        form: CliRunner().invoke(cli, [*words, "--format", form], standalone_mode=False)
        for form in ("md", "json", "html")
    }
    assert all(each.exception is None and each.return_value == 0 for each in done.values()), done
    table = json.loads(done["json"].stdout)
    assert table["schema"] == 1 and table["command"] == "report restart" and table["ledger"]
    assert table["summary"]["matrix"]["releases"] == ["0.5.22", "0.5.23"]
    assert table["summary"]["matrix"]["rows"]["202"] == ["in part", "adopted"]
    assert "qwennext-stack-204-2026-10-15" in done["md"].stdout and done["html"].stdout.startswith("<!doctype html>")
    assert len(load_asking(tmp_path / "after.json").history) == 2
