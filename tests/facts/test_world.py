"""Which file a dotted name means."""

import pytest

from stackctl.facts.cache import FactsCache
from stackctl.facts.names import Import
from stackctl.facts.world import Found, World
from tests.census.merging import MemoryTree

TREE = {
    "python/pkg/__init__.py": "from pkg.core import run\n",
    "python/pkg/core.py": "class A:\n    def go(self):\n        self.x = 1\n\ndef run():\n    return A()\n",
    "python/pkg/deep/leaf.py": "from ..core import A as Base\n\nclass B(Base):\n    y = 2\n",
    "python/pkg/star.py": "from pkg.core import *\n",
    "python/pkg/lazy.py": "def __getattr__(name):\n    return name\n",
    "tools/script.py": "import helper\n",
    "tools/helper.py": "z = 1\n",
}


@pytest.fixture
def world():
    return World(MemoryTree("t", TREE), FactsCache(None))


def test_modules_are_found_from_where_they_are_imported(world):
    assert world.module("pkg.core", "python/pkg/star.py") == "python/pkg/core.py"
    assert world.module("pkg.deep", "python/pkg/star.py") == "python/pkg/deep"
    assert world.module("core", "python/pkg/deep/leaf.py", 2) == "python/pkg/core.py"
    assert world.module("helper", "tools/script.py") == "tools/helper.py"
    assert world.module("helper", "python/pkg/core.py") == ""
    assert world.module("os", "tools/script.py") == ""


def test_names_are_followed_through_imports(world):
    assert world.resolve("python/pkg/__init__.py", "run") == Found("function", "python/pkg/core.py", "run")
    assert world.resolve("python/pkg/deep/leaf.py", "Base") == Found("class", "python/pkg/core.py", "A")
    assert world.resolve("python/pkg/star.py", "A.go") == Found("method", "python/pkg/core.py", "A.go")


def test_what_cannot_be_known_is_unknown(world):
    assert world.exports("python/pkg/lazy.py") is None
    assert world.exports("python/pkg/star.py") >= {"A", "run"}
    assert world.state(Import("", "torch", 0, "nn", "nn", 1, False), "python/pkg/core.py") == "outside"


def test_imports_have_a_state(world):
    def state(module, name):
        return world.state(Import("", module, 0, name, name, 1, False), "python/pkg/star.py")

    assert state("pkg.core", "A") == "ok"
    assert state("pkg.core", "gone") == "no name"
    assert state("pkg.gone", "A") == "no module"
    assert state("pkg.lazy", "anything") == "ok"
    assert state("pkg", "deep") == "ok"


def test_a_class_and_its_ancestors(world):
    order, complete = world.lineage("python/pkg/deep/leaf.py", "B")
    assert order == [("python/pkg/deep/leaf.py", "B"), ("python/pkg/core.py", "A")]
    assert complete
    assert world.attributes("python/pkg/core.py", "A") == {"go": {""}, "x": {"go"}}
