"""Pack everything a GPU host needs to run the scenarios with its own SGLang, without stackctl and without a network.

    stackctl-smoke/run          sh run PYTHON [OPTIONS]: runs what there is for the GPU engine, within an hour
    stackctl-smoke/stackctl/    the package; what a run uses of it needs click and packaging, which SGLang brings
    stackctl-smoke/stack/       stack.toml and checks/smoke
    stackctl-smoke/tree/        the planted tree's python/
    stackctl-smoke/model/       configuration and tokenizer of a model as large as the pull request's
"""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
from pathlib import Path

import stackctl
from stackctl.model.errors import StackctlError
from stackctl.smoke.model_folder import copy_model_folder
from stackctl.smoke.results import Subject

TOP = "stackctl-smoke"
_RUN = """\
#!/bin/sh
# Run the GPU scenarios of this bundle and collect their results: run PYTHON [OPTIONS of stackctl smoke run]
# PYTHON: an interpreter (3.11 or later) that has SGLang {release} and sees a GPU. Nothing is downloaded.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || {{ echo "usage: $0 PYTHON [OPTIONS]" >&2; exit 2; }}
python=$1
shift
out=${{STACKCTL_SMOKE_OUT:-$PWD/smoke-results-$(date -u +%Y%m%dT%H%M%SZ)}}
PYTHONPATH=$here "$python" -m stackctl --stack "$here/stack" smoke run \\
    ${{STACKCTL_SMOKE_SCENARIOS:-decode mixed ttft}} --engine "${{STACKCTL_SMOKE_ENGINE:-gpu}}" \\
    --tree "$here/tree" --release {release} --python "$python" --model "$here/model" --out "$out" --time-limit 60 "$@" || code=$?
if [ -d "$out" ]; then
    tar czf "$out.tar.gz" -C "$(dirname "$out")" "$(basename "$out")"
    echo "collected: $out.tar.gz"
fi
exit "${{code:-0}}"
"""


def write_bundle(out: Path, tree: Path, model: Path, checks: Path, subject: Subject) -> None:
    """Write the archive in one step. Raises StackctlError where it cannot be written."""
    try:
        with tempfile.TemporaryDirectory(prefix="stackctl-model-") as scratch:
            large = Path(scratch) / "model"
            copy_model_folder(model, large)
            fresh = out.with_name(f".{out.name}.new")
            with tarfile.open(fresh, "w:gz", compresslevel=6) as archive:
                _add_text(archive, "run", _RUN.format(release=subject.release), 0o755)
                _add_text(archive, "SUBJECT", f"{subject.release} {subject.tree} {subject.commit or ''}\n", 0o644)
                _add_text(archive, "stack/stack.toml", (checks.parents[1] / "stack.toml").read_text(encoding="utf-8"), 0o644)
                parts = ((Path(stackctl.__file__).parent, "stackctl"), (tree / "python", "tree/python"), (large, "model"), (checks, "stack/checks/smoke"))
                for folder, name in parts:
                    archive.add(folder, f"{TOP}/{name}", filter=_plain)
        os.replace(fresh, out)
    except OSError as error:
        raise StackctlError(error.strerror or str(error), error.filename or str(out)) from error


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """No bytecode, no owner, no time: the same tree gives the same members."""
    if member.name.endswith((".pyc", "__pycache__")):
        return None
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def _add_text(archive: tarfile.TarFile, name: str, text: str, mode: int) -> None:
    data = text.encode()
    member = tarfile.TarInfo(f"{TOP}/{name}")
    member.size, member.mode = len(data), mode
    archive.addfile(member, io.BytesIO(data))
