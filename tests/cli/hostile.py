"""The program as a person runs it, on a small stack and a small repository, both in a scratch folder."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from stackctl.trees.git import Repository
from tests.support import commit_files, git, repository_of, write_files

HOST = "python/sglang/srt/serving.py"
SERVING = """import os


class Serving:
    async def handle(self, request):
        # convert
        return self.convert(request)

    def convert(self, request):
        return request


def start():
    setup()
"""
UPSTREAM = {
    "python/sglang/version.py": '__version__ = "0.5.23"\n',
    HOST: SERVING,
    "python/sglang/srt/__init__.py": "",
    "data.json": '{\n  "theirs": 2\n}\n',
}
ENTRIES = {
    "stack.toml": 'name = "stack"\nsource = "python"\n',
    "patches/data.patch": '--- a/data.json\n+++ b/data.json\n@@ -1,3 +1,4 @@\n {\n+  "ours": 1,\n   "theirs": 2\n }\n',
    "entries/001-worker/files/python/sglang/srt/worker.py": "def run(func, *args):\n    return func(*args)\n",
    "entries/001-worker/entry.toml": """number = 1
title = "Worker"
disposition = "permanent"
reason = "because"

[[plant]]
id = "worker"
kind = "file"
path = "python/sglang/srt/worker.py"
unit = "core"

[[plant]]
id = "import"
kind = "import"
host = "sglang.srt.serving:"
code = "from sglang.srt.worker import run"
unit = "core"

[[plant]]
id = "convert"
kind = "reroute"
host = "sglang.srt.serving:Serving.handle"
call = "self.convert"
through = "run"
unit = "convert"
""",
    "entries/002-start/entry.toml": """number = 2
title = "Start"
disposition = "permanent"
reason = "because"

[[plant]]
id = "data"
kind = "hunk"
patch = "data.patch"
unit = "data"

[[plant]]
id = "start"
kind = "statement"
host = "sglang.srt.serving:start"
after = "setup()"
code = "ours()"
""",
}


@dataclass(frozen=True)
class Ran:
    """What one run gave."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err

    @property
    def json(self):
        return json.loads(self.out)


@dataclass(frozen=True)
class Bench:
    """A stack, a repository, and the program between them."""

    folder: Path
    stack: Path
    repo: Path

    def environment(self, **more: str) -> dict[str, str]:
        """A clean environment: no configuration of the machine's, no identity, a cache of its own."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "STACKCTL_"))}
        kept |= {"HOME": str(self.folder / "home"), "XDG_CONFIG_HOME": str(self.folder / "home"), "STACKCTL_CACHE": str(self.folder / "cache")}
        return kept | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "TMPDIR": str(self.folder / "tmp")} | more

    def run(self, *arguments: str | bytes | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Ran:
        """Run `stackctl --stack STACK ...`; no run may show a traceback or call itself our bug.

        The program's own `main` runs in this process, which takes a tenth of the time of a process of its
        own. With STACKCTL_TEST_APART set, or an environment to be started in, it gets one.
        """
        words = ["--stack", str(self.stack), *arguments]
        apart = env is not None or "STACKCTL_TEST_APART" in os.environ
        done = self.raw(*words, env=env, cwd=cwd) if apart else self._here(words, cwd or self.folder)
        ran = Ran(done.returncode, done.stdout.decode(errors="surrogateescape"), done.stderr.decode(errors="surrogateescape"))
        assert "Traceback" not in ran.text and "bug of ours" not in ran.text, ran.text
        assert ran.code in (0, 1, 2), ran
        return ran

    def _here(self, words: Sequence[str | bytes | Path], cwd: Path) -> subprocess.CompletedProcess:
        from stackctl.cli.main import main

        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors) for errors in ("strict", "backslashreplace"))
        code: object = 0
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            for name in ("home", "tmp"):
                (self.folder / name).mkdir(exist_ok=True)
            for key in os.environ.keys() - self.environment().keys():
                patch.delenv(key)
            for key, value in self.environment().items():
                patch.setenv(key, value)
            patch.setattr(sys, "argv", ["stackctl", *map(os.fsdecode, words)])
            patch.chdir(cwd)
            try:
                main()
            except SystemExit as error:
                code = error.code
        for stream in (out, err):
            stream.flush()
        return subprocess.CompletedProcess(words, int(code or 0), out.buffer.getvalue(), err.buffer.getvalue())

    def raw(self, *arguments: str | bytes | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> subprocess.CompletedProcess:
        """Run the program as it is."""
        for name in ("home", "tmp"):
            (self.folder / name).mkdir(exist_ok=True)
        return subprocess.run(
            [sys.executable, "-m", "stackctl", *arguments], env=self.environment(**(env or {})), cwd=cwd or self.folder,
            capture_output=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def apply(self, *more: str | bytes | Path, onto: str = "v0.5.23", env: Mapping[str, str] | None = None) -> Ran:
        return self.run("apply", "--repo", self.repo, "--onto", onto, *more, env=env)

    def verify(self, *more: str | bytes | Path, env: Mapping[str, str] | None = None) -> Ran:
        return self.run("verify", "--repo", self.repo, *more, env=env)

    def git(self, *arguments: str) -> str:
        return git(self.repo, *arguments)

    def refs(self) -> str:
        return self.git("for-each-ref", "--format=%(refname) %(objectname)")

    def commit(self, files: Mapping[str, str | bytes], tag: str = "v0.5.23") -> str:
        """Commit more upstream files and move the release's tag there."""
        commit = commit_files(self.repo, files, "more")
        self.git("tag", "--force", tag)
        return commit


def bench(folder: Path, upstream: Mapping[str, str | bytes] = UPSTREAM, entries: Mapping[str, str | bytes] = ENTRIES) -> Bench:
    """A stack of two entries in `folder`/stack and a repository tagged v0.5.23 in `folder`/repo."""
    write_files(folder / "stack", entries)
    repository: Repository = repository_of(folder / "repo", upstream)
    git(repository.path, "tag", "v0.5.23")
    return Bench(folder, folder / "stack", folder / "repo")
