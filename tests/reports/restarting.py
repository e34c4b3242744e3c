"""The restart of the seed's commit as a fixture: a fork, its deployed tip and the next one, two environments."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from stackctl.carry.apply import apply
from stackctl.model.report import Report
from stackctl.model.stack import Stack
from stackctl.plants.manifest import load_stack
from stackctl.probes.asking import Asking, ask_all
from stackctl.probes.declared import load_probes
from stackctl.reports.restart import Facts, Wanted, gather, restart_report
from stackctl.reports.sections import sections
from stackctl.trees.git import Repository
from tests.probes.environments import venv
from tests.support import commit_files, git, repository_of, write_files

QWENNEXT = Path(__file__).parent / "qwennext"
LAUNCH = "SGLANG_PREPROCESS_EXECUTOR=on python -m sglang.launch_server --tp 8"

UPSTREAM = {
    "python/sglang/__init__.py": "",
    "python/sglang/version.py": '__version__ = "0.5.22"\n',
    "python/sglang/srt/pool.py": "class Pool:\n    slots = []\n\n    def free(self, slots):\n        self.slots.extend(slots)\n",
    "python/sglang/srt/qsa_cache.py": "def build(size):\n    return QsaCache(size, shards=1)\n",
    "python/sglang/srt/preprocess.py": "def convert(request):\n    return request\n\n\ndef clean(request):\n    return request\n",
    "python/sglang/srt/verify.py": "def verify(draft, target):\n    return draft\n",
    "python/sglang/srt/comm.py": "".join(
        f"def {name}(x):\n    return transport(x)\n\n\n" for name in ("gather_logits", "all_reduce", "gather_decode")
    ),
    "python/sglang/srt/attention.py": "def plan_decode(wrapper, q):\n    return wrapper.plan(q)\n",
}
NEWER = {
    "python/sglang/version.py": '__version__ = "0.5.23"\n',
    "python/sglang/srt/pool.py": UPSTREAM["python/sglang/srt/pool.py"]
    + "\n    def reconcile(self):\n        self.slots = sorted(set(self.slots))\n",
}
DECODE = "class BatchDecodeWrapper:\n    def plan(self, q, kv): ...\n"
OLD_LOCK = "flashinfer-python==0.7.0\ntorch==2.13.0\nidna==3.1\n"
NEW_LOCK = "flashinfer-python==0.7.1\ntorch==2.13.0\nidna==3.2\n"


@dataclass(frozen=True)
class Fork:
    """The fork's repository with tags `deployed` and `next`, the stack, two environments and their lock files."""

    repository: Repository
    stack: Stack
    old_python: Path
    new_python: Path
    locks: tuple[Path, Path]


def make_fork(folder: Path) -> Fork:
    """Upstream 0.5.22 with the deployed stack, merged with 0.5.23, with the next stack on it."""
    repository = repository_of(folder / "fork", UPSTREAM)
    git(repository.path, "tag", "v0.5.22")
    apply(deployed_stack(folder), repository, "v0.5.22", branch="production")
    git(repository.path, "tag", "deployed", "production")
    commit_files(repository.path, NEWER, "0.5.23")
    git(repository.path, "tag", "v0.5.23")
    git(repository.path, "checkout", "--quiet", "production")
    git(repository.path, "merge", "--quiet", "--no-edit", "-X", "theirs", "v0.5.23")
    git(repository.path, "checkout", "--quiet", "--detach")
    shutil.copytree(QWENNEXT, folder / "stack", ignore=shutil.ignore_patterns("deployed"))
    stack = load_stack(folder / "stack")
    apply(stack, repository, "v0.5.23", branch="production")
    git(repository.path, "tag", "next", "production")
    write_files(folder, {"old.txt": OLD_LOCK, "new.txt": NEW_LOCK})
    old = venv(
        folder / "old-env",
        {"flashinfer/__init__.py": "", "flashinfer/comm.py": "", "flashinfer/decode.py": DECODE},
        flashinfer_python="0.7.0",
    )
    new = venv(
        folder / "new-env",
        {
            "flashinfer/__init__.py": "",
            "flashinfer/comm.py": "class PcieIpcTransport: ...\n",
            "flashinfer/decode.py": DECODE,
        },
        flashinfer_python="0.7.1",
    )
    return Fork(repository, stack, old, new, (folder / "old.txt", folder / "new.txt"))


def deployed_stack(folder: Path) -> Stack:
    """The stack as it was deployed: without entries 200 to 204, entry 156 still carried."""
    root = folder / "deployed-stack"
    shutil.copytree(QWENNEXT, root, ignore=shutil.ignore_patterns("20?-*", "deployed"))
    shutil.copyfile(QWENNEXT / "deployed" / "156.toml", root / "entries" / "156-pool-helper" / "entry.toml")
    return load_stack(root)


def earlier(fork: Fork) -> Asking:
    """The answers at two restarts on the old environment."""
    probes = load_probes(fork.stack.root)
    first = ask_all(fork.stack, probes, fork.old_python, LAUNCH, now="2026-10-09T08:00:00Z")
    return ask_all(fork.stack, probes, fork.old_python, LAUNCH, first, now="2026-10-14T08:00:00Z")


def facts_of(fork: Fork, **changes: object) -> Facts:
    """What a restart report on the fork gathers."""
    wanted = {
        "at": "next",
        "since": "deployed",
        "python": fork.new_python,
        "launch": LAUNCH,
        "before": earlier(fork),
        "locks": fork.locks,
    }
    return gather(fork.stack, fork.repository, Wanted(**{**wanted, **changes}), load_probes(fork.stack.root))  # type: ignore[arg-type]


def report_of(facts: Facts) -> Report:
    """The report of gathered facts."""
    return restart_report(facts, sections(facts))
