"""Every probe kind on real installed packages and on small environments: present, absent, and what cannot be told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stackctl.model.errors import StackctlError
from stackctl.model.probe import Told
from stackctl.probes.environment import open_environment
from stackctl.probes.launch import parse_launch
from tests.probes.environments import LIBRARY, answer, install, venv

HERE = open_environment(Path(sys.executable))  # the environment of the tests: real packages, as pip installed them

REAL = [
    ("distribution", {"name": "rich"}, "present"),
    ("distribution", {"name": "Pytest_XDist", "versions": ">=3"}, "present"),
    ("distribution", {"name": "rich", "versions": "<1"}, "absent"),
    ("distribution", {"name": "flashinfer-python"}, "absent"),
    ("symbol", {"target": "click:Group"}, "present"),  # imported from click.core
    ("symbol", {"target": "click:Group.add_command"}, "present"),
    ("symbol", {"target": "click:Group.invoke"}, "present"),
    ("symbol", {"target": "click:Group.main"}, "present"),  # inherited from Command
    ("symbol", {"target": "rich.console:Console.print"}, "present"),
    ("symbol", {"target": "stackctl.model.stack:Stack.entry"}, "present"),  # an editable install
    ("symbol", {"target": "asyncio:TaskGroup"}, "present"),  # the standard library, through a star import
    ("symbol", {"target": "click:Grupe"}, "not-judged"),  # click/__init__.py has a __getattr__
    ("symbol", {"target": "rich.console:Consul"}, "absent"),
    ("symbol", {"target": "click.nowhere:Group"}, "absent"),
    ("parameter", {"target": "os.path:join", "parameter": "a"}, "present"),  # os hands out posixpath
    ("symbol", {"target": "os.paths:join"}, "absent"),
    ("symbol", {"target": "nowhere:Group"}, "absent"),
    ("symbol", {"target": "libcst.native:parse_module"}, "not-judged"),  # compiled
    ("parameter", {"target": "rich.console:Console.print", "parameter": "soft_wrap"}, "present"),
    ("parameter", {"target": "rich.console:Console.print", "parameter": "uniform_q_len"}, "absent"),
    ("parameter", {"target": "rich.console:Console", "parameter": "width"}, "present"),  # its __init__
    ("parameter", {"target": "stackctl.model.stack:Plant", "parameter": "unit"}, "present"),  # a dataclass's field
    ("parameter", {"target": "stackctl.model.stack:Plant", "parameter": "units"}, "absent"),
    ("parameter", {"target": "click:echo", "parameter": "err"}, "present"),
    ("parameter", {"target": "click:command", "parameter": "aliases"}, "not-judged"),  # **attrs
    ("attribute", {"target": "click:Command.allow_extra_args"}, "present"),
    ("attribute", {"target": "rich.console:Console.is_terminal"}, "present"),
    ("attribute", {"target": "rich.console:Console._color_system"}, "present"),  # set on self
    ("attribute", {"target": "click:Command.allow_nothing_at_all"}, "absent"),
    ("file", {"path": "rich/console.py"}, "present"),
    ("file", {"path": "pyvenv.cfg"}, "present"),
    ("file", {"path": "rich/cuda_kernels.py"}, "absent"),
    ("file", {"path": "/dev/null"}, "present"),
    ("file", {"path": "/dev/no-such-device"}, "absent"),
]


@pytest.mark.parametrize(
    ("kind", "options", "told"), REAL, ids=lambda value: value if isinstance(value, str) else ":".join(value.values())
)
def test_real_packages(kind, options, told):
    found = answer(HERE, kind, **options)
    assert found.told == told, found
    assert found.evidence


def test_what_was_found_is_told():
    assert answer(HERE, "distribution", name="rich").found
    assert (
        "rich/console.py:" in answer(HERE, "parameter", target="rich.console:Console.print", parameter="end").evidence
    )
    assert answer(HERE, "attribute", target="click:Command.allow_extra_args").found == "False"


SERVE = "env A=1 SGLANG_X='a b' python -m sglang.launch_server --tp 8 --tokenizer-worker-num=4 --tp 16"
LAUNCHED = [
    ("flag", SERVE, {"flag": "--tokenizer-worker-num"}, "present", "4"),
    ("flag", SERVE, {"flag": "--tp"}, "present", "16"),
    ("flag", SERVE, {"flag": "--tp", "equals": "8"}, "absent", ""),
    ("flag", SERVE, {"flag": "--enable-x"}, "absent", ""),
    ("flag", "serve --enable-x --tp 1", {"flag": "--enable-x"}, "present", ""),
    ("flag", "serve --enable-x '", {"flag": "--enable-x"}, None, ""),
    ("flag", None, {"flag": "--enable-x"}, "not-judged", ""),
    ("flag", "serve --tokenizer-worker 4", {"flag": "--tokenizer-worker-num"}, "not-judged", ""),
    ("flag", "serve --config a.yaml", {"flag": "--enable-x"}, "not-judged", ""),
    ("flag", "serve $EXTRA", {"flag": "--enable-x"}, "not-judged", ""),
    ("variable", SERVE, {"name": "SGLANG_X"}, "present", "a b"),
    ("variable", SERVE, {"name": "SGLANG_X", "equals": "b"}, "absent", ""),
    ("variable", SERVE, {"name": "OUTER"}, "present", "o"),
    ("variable", SERVE, {"name": "NEITHER"}, "absent", ""),
]


@pytest.mark.parametrize(("kind", "launch", "options", "told", "found"), LAUNCHED)
def test_the_launch_command_and_variables(kind, launch, options, told, found):
    if told is None:
        with pytest.raises(StackctlError, match="cannot be split"):
            parse_launch(launch)
        return
    got = answer(HERE, kind, launch, {"OUTER": "o"}, **options)
    assert (got.told, got.found) == (told, found), got


FLASHINFER = {
    "flashinfer/__init__.py": "from .prefill import BatchPrefillWithPagedKVCacheWrapper as Wrapper\n",
    "flashinfer/prefill.py": """
        from typing import overload
        from .base import Base

        class BatchPrefillWithPagedKVCacheWrapper(Base):
            @overload
            def plan(self, qo_indptr: list) -> None: ...
            @overload
            def plan(self, qo_indptr: int) -> None: ...
            def plan(self, qo_indptr, *, causal=False) -> None:
                self._planned = True
            begin_forward = plan
    """,
    "flashinfer/base.py": """
        import enum
        class Base:
            limit: int = 8
            def run(self, q): ...
        class Mode(enum.Enum):
            FAST = 1
        class Handed(NotImported): ...
        def either(a): ...
        if enum:
            def twice(a): ...
        else:
            def twice(a, b): ...
    """,
}


def test_a_wrapper_as_flashinfer_has_it(tmp_path):
    python = venv(tmp_path, FLASHINFER, flashinfer_python="0.7.1")
    plan = {"target": "flashinfer:Wrapper.plan", "parameter": "uniform_q_len"}
    assert answer(python, "parameter", **plan).told is Told.ABSENT
    assert answer(python, "parameter", **{**plan, "parameter": "causal"}).told is Told.PRESENT
    assert (
        answer(python, "parameter", target="flashinfer:Wrapper.begin_forward", parameter="causal").told is Told.PRESENT
    )
    assert answer(python, "parameter", target="flashinfer:Wrapper.run", parameter="q").told is Told.PRESENT
    assert answer(python, "attribute", target="flashinfer:Wrapper._planned").told is Told.PRESENT
    assert answer(python, "attribute", target="flashinfer:Wrapper.limit").found == "8"
    assert answer(python, "symbol", target="flashinfer.base:Mode.name").told is Told.PRESENT  # of enum.Enum
    assert answer(python, "symbol", target="flashinfer.base:Handed.x").told is Told.NOT_JUDGED
    assert answer(python, "parameter", target="flashinfer.base:twice", parameter="b").told is Told.NOT_JUDGED
    assert answer(python, "parameter", target="flashinfer.base:twice", parameter="a").told is Told.PRESENT
    FLASHINFER_NEW = FLASHINFER["flashinfer/prefill.py"].replace("causal=False", "causal=False, uniform_q_len=None")
    newer = venv(tmp_path / "new", {**FLASHINFER, "flashinfer/prefill.py": FLASHINFER_NEW}, flashinfer_python="0.7.2")
    assert answer(newer, "parameter", **plan).told is Told.PRESENT


INSTALLED = {
    "distribution": {"name": "rich"},
    "symbol": {"target": "rich:x"},
    "parameter": {"target": "rich:x", "parameter": "p"},
    "attribute": {"target": "rich:x.y"},
    "file": {"path": "rich/x.py"},
}


def test_an_environment_that_is_not_there_is_not_judged(tmp_path):
    dangling = venv(tmp_path / "dangling")
    dangling.unlink()
    dangling.symlink_to(tmp_path / "gone")
    bare = venv(tmp_path / "bare")
    for child in (tmp_path / "bare" / LIBRARY).iterdir():
        child.unlink()
    (tmp_path / "bare" / LIBRARY).rmdir()
    (tmp_path / "ls").touch()
    for python in (tmp_path / "nowhere" / "bin" / "python", dangling, bare, tmp_path / "ls"):
        for kind, options in INSTALLED.items():
            found = answer(python, kind, **options)
            assert found.told is Told.NOT_JUDGED and str(tmp_path) in found.evidence, (python, kind, found)
        assert answer(python, "flag", "serve --x", flag="--x").told is Told.PRESENT


def test_a_damaged_installation_is_not_judged(tmp_path):
    python = venv(
        tmp_path,
        {
            "a/__init__.py": "def f(x): ...\n",
            "broken/__init__.py": "def (\n",
            "lazy.py": "def __getattr__(name): ...\n",
            "~lashinfer-0.7.0.dist-info/METADATA": "",
            "empty-1.dist-info/RECORD": "",
        },
    )
    install(tmp_path, "a", "1", "a/__init__.py,,\na/gone.py,,\n")
    install(tmp_path, "b", "1", "b/__init__.py,,\nb/data.bin,,\n")
    install(tmp_path, "two", "1")
    install(tmp_path, "two", "2")
    cases = [
        ("distribution", {"name": "a"}, "a/gone.py is listed and not there"),
        ("symbol", {"target": "a.gone:x"}, "a is damaged"),
        ("symbol", {"target": "b:x"}, "b is damaged"),
        ("file", {"path": "b/data.bin"}, "b is damaged"),
        ("symbol", {"target": "broken:x"}, "does not parse"),
        ("symbol", {"target": "lazy:x"}, "__getattr__"),
        ("distribution", {"name": "two"}, "more than once"),
        ("distribution", {"name": "flashinfer"}, "a pip that was killed left ~lashinfer"),
        ("distribution", {"name": "empty"}, "names no version"),
    ]
    for kind, options, reason in cases:
        found = answer(python, kind, **options)
        assert found.told is Told.NOT_JUDGED and reason in found.evidence, (options, found)
    assert answer(python, "symbol", target="a:f").told is Told.PRESENT


def test_nothing_of_the_environment_is_imported(tmp_path):
    python = venv(tmp_path, {"loud.py": "raise SystemExit('imported')\nx = 1\n", "loud.pth": "import loud\n"})
    assert answer(python, "attribute", target="loud:x").found == "1"
    assert "loud" not in sys.modules


def test_a_name_imported_in_a_circle(tmp_path):
    python = venv(tmp_path, {"a.py": "from b import x\n", "b.py": "from a import x\n"})
    assert answer(python, "symbol", target="a:x").told is Told.NOT_JUDGED
