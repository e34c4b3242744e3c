"""The stack through real merges: what a merge loses is named, and replant makes it a fresh apply again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stackctl.carry.apply import apply, replant
from stackctl.census.verify import verify
from stackctl.model.report import Report
from stackctl.model.verdict import EntryVerdict, Exit, Verdict
from stackctl.trees.git import Repository
from stackctl.trees.release import release_of
from stackctl.trees.stock import stock_tree
from stackctl.trees.tree import GitTree
from tests.support import commit_files, git, own_stack, releases_repository, write_files

pytestmark = pytest.mark.releases


def census(repository: Repository, ref: str, release: str | None = None, upstream: str | None = None) -> Report:
    tree = GitTree(repository, ref)
    found = release_of(tree, release)
    return verify(own_stack(), tree, found, stock_tree(repository, found, upstream))


def merge(repository: Repository, branch: str, theirs: str, side: str = "theirs") -> None:
    """`git merge -X side` in a worktree, whatever conflicts it leaves taken from that side."""
    folder = repository.path.parent / f"merge-{branch.replace('/', '-')}"
    if not folder.exists():
        git(repository.path, "worktree", "add", "--quiet", "--detach", str(folder), branch)
    git(folder, "checkout", "--quiet", branch)
    git(folder, "merge", "--quiet", "-X", side, "--no-edit", theirs, check=False)
    for path in git(folder, "diff", "--name-only", "--diff-filter=U").splitlines():
        git(folder, "checkout", f"--{side}", "--", path)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--no-edit", check=False)
    git(folder, "checkout", "--quiet", "--detach")


def differing(repository: Repository, one: str, other: str) -> list[str]:
    return repository.text("diff", "--name-only", one, other).splitlines()


@pytest.mark.parametrize("side", ["theirs", "ours"])
def test_two_real_merges(tmp_path: Path, side: str) -> None:
    """Judging point 3: 0.5.21 merged with 0.5.22 and then 0.5.23."""
    versions = ("0.5.21", "0.5.22", "0.5.23")
    repository = releases_repository(tmp_path / "repo", *versions)
    for version in versions:
        apply(own_stack(), repository, f"v{version}", branch=f"fresh-{version}")
    git(repository.path, "branch", "fork", "fresh-0.5.21")
    for version in versions[1:]:
        merge(repository, "fork", f"v{version}", side)
        before = census(repository, "fork")
        run = replant(own_stack(), repository, "fork")
        after = census(repository, "fork")
        lost = {(f.entry, f.plant) for f in before.findings if f.plant and f.entry != "190"}  # only watched
        put_in = {(str(o.entry.number), plant) for o in run.outcomes for plant in o.planted}
        assert before.exit is Exit.FINDINGS
        assert put_in == lost
        assert after.exit is Exit.CLEAN, [f.message for f in after.findings]
        if side == "theirs":  # what -X ours threw away of upstream's is not the stack's to put back
            assert differing(repository, "fork", f"fresh-{version}") == []


def without_sites(files: dict[str, bytes]) -> dict[str, bytes]:
    """Upstream's next release: an executor of its own, all call sites but Responses' two, one keyword more."""
    responses = "python/sglang/srt/entrypoints/openai/serving_responses.py"
    text = files[responses].decode()
    stock_call = "await self._preprocess(\n                    self._make_request_with_harmony, request, prev_response\n                )"
    assert stock_call in text
    text = text.replace(stock_call, "(\n                    self._make_request_with_harmony(request, prev_response)\n                )")
    start = text.index("processed_messages = await self._preprocess(")
    end = text.index("\n        )\n", start)
    call = "processed_messages = self._process_messages(\n            chat_request,\n            is_multimodal,\n"
    keywords = "            output_constrained=request.has_json_schema_constraint(),\n            trace=request.request_id,"
    files[responses] = (text[:start] + call + keywords + text[end:]).encode()
    return files


EXECUTOR = """class PreprocessExecutor:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    async def run(self, func, *args):
        return func(*args)
"""


def made_up_next(repository: Repository, planted: str) -> str:
    """A commit after v0.5.23 in which upstream took entry 201 in a form of its own; tagged v0.5.24."""
    folder = repository.path.parent / "upstream-next"
    git(repository.path, "worktree", "add", "--quiet", "--detach", str(folder), "v0.5.23")
    tree = GitTree(repository, planted)
    paths = [path for path in differing(repository, "v0.5.23", planted) if "serving" in path or "manager" in path]
    files = without_sites({path: tree.read(path) for path in paths if not path.startswith("test/")})
    files["python/sglang/srt/managers/preprocess_executor.py"] = EXECUTOR.encode()
    base = "python/sglang/srt/entrypoints/openai/serving_base.py"
    files[base] = _own_form(files[base].decode()).encode()
    manager = "python/sglang/srt/managers/tokenizer_manager.py"
    text = files[manager].decode()
    names = "from sglang.srt.managers.preprocess_executor import (\n    PreprocessExecutor,\n    current_tokenizer,\n    is_short_text,\n    own_backend,\n    preprocess,\n)\n"
    assert names in text
    text = text.replace(names, "from sglang.srt.managers.preprocess_executor import PreprocessExecutor\n")
    first, last = text.index("    @property\n    def tokenizer(self)"), text.index("    def init_model_config")
    text = text[:first] + text[last:]
    text = text.replace("own_backend(self.tokenizer)", "self.tokenizer").replace("await preprocess(\n                    self,\n", "await self.preprocess_executor.run(\n")
    files[manager] = text.replace("                    short=is_short_text(texts),\n", "").encode()
    for path in ("python/sglang/srt/managers/tokenizer_manager_score_mixin.py", "python/sglang/srt/entrypoints/ollama/serving.py"):
        text = files[path].decode().replace("from sglang.srt.managers.preprocess_executor import preprocess\n", "")
        text = text.replace("await preprocess(\n                self,", "await self.preprocess_executor.run(")
        text = text.replace("await preprocess(\n                    self, ", "await self.preprocess_executor.run(\n                    ")
        text = text.replace("await preprocess(\n            self.tokenizer_manager,", "await self.tokenizer_manager.preprocess_executor.run(")
        assert "preprocess(" not in text.replace("preprocess_executor", "")
        files[path] = text.encode()
    write_files(folder, files)
    version = (folder / "python/sglang/_version.py").read_text().replace("0.5.23", "0.5.24").replace("(0, 5, 23)", "(0, 5, 24)")
    commit_files(folder, {"python/sglang/_version.py": version}, "0.5.24")
    git(folder, "tag", "v0.5.24")
    return "v0.5.24"


def _own_form(text: str) -> str:
    """serving_base with a `_preprocess` that is upstream's own, not ours."""
    first = text.index("    async def _preprocess(")
    last = text.index("    @abstractmethod", first)
    own = "    async def _preprocess(self, func, *args):\n        return await self.tokenizer_manager.preprocess_executor.run(func, *args)\n\n"
    text = text[:first] + own + text[last:]
    text = text.replace("from sglang.srt.managers.preprocess_executor import preprocess_request\n", "")
    return text.replace("request, raw_request, hop=True", "request, raw_request")


RESPONSES = "python/sglang/srt/entrypoints/openai/serving_responses.py"


def check_made_whole(repository: Repository, branch: str, theirs: str) -> None:
    """After replant: the two calls go through upstream's own helper, and nothing else differs from upstream's form."""
    replant(own_stack(), repository, branch)
    after = census(repository, branch)
    assert after.exit is Exit.CLEAN, [(f.plant, f.message) for f in after.findings]
    assert {row.number: row.verdict for row in after.entries}["201"] is EntryVerdict.WHOLE
    text = GitTree(repository, branch).read(RESPONSES).decode()
    assert "await self._preprocess(\n                    self._make_request_with_harmony, request, prev_response\n" in text
    assert "functools.partial(\n                self._process_messages,\n" in text
    assert "trace=request.request_id" in text
    fork_only = {"FORK_NOTICE.md", "python/sglang/version.py"}
    assert set(differing(repository, theirs, branch)) - fork_only == {RESPONSES}


def test_upstream_adopts_all_but_two_sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Judging point 4, the fork's merge log: upstream absorbed the entry but for the two calls of Responses."""
    # Without what stands on top of 201: the made-up upstream is cut from the planted tree, and would have it too.
    below = replace(own_stack(), entries=tuple(entry for entry in own_stack().entries if entry.number <= 205))
    monkeypatch.setitem(globals(), "own_stack", lambda: below)
    repository = releases_repository(tmp_path / "repo", "0.5.23")
    apply(own_stack(), repository, "v0.5.23", branch="fork")
    theirs = made_up_next(repository, "fork")

    # Every conflict resolved to upstream's side: its own form stands, and the two calls are lost.
    git(repository.path, "branch", "taken", theirs)
    before = census(repository, "taken")
    found = {f.plant: f.kind for f in before.findings if f.entry == "201" and f.plant}
    assert found == {"responses-harmony": Verdict.LOST, "responses-render": Verdict.LOST}
    (part,) = [f for f in before.findings if f.kind is Verdict.ADOPTED_IN_PART]
    assert part.entry == "201"
    check_made_whole(repository, "taken", theirs)

    # Git's own merge leaves half of ours beside it, which would not even import: that is taken out.
    merge(repository, "fork", theirs)
    merged = census(repository, "fork")
    assert merged.exit is Exit.FINDINGS
    assert {f.plant for f in merged.findings if f.kind is Verdict.DUPLICATED} >= {"handler-import", "manager-tokenizer"}
    check_made_whole(repository, "fork", theirs)
