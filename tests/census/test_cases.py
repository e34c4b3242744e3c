"""The shared merge cases, where that folder is there: the score script's own rules, the audit in this process."""

import importlib.util
from pathlib import Path

import pytest

from stackctl.census.audit import Audit
from stackctl.census.sides import Sides
from stackctl.facts.cache import FactsCache
from stackctl.trees.tree import FolderTree

SHARED = Path(__file__).resolve().parents[3] / "shared"
CASES = sorted((SHARED / "cases").glob("*/expected.toml"))

pytestmark = pytest.mark.skipif(not CASES, reason="the shared cases are not here")


def findings(_command, *sides):
    trees = [FolderTree(Path(side)) for side in sides]
    return [finding.to_json() for finding in Audit(Sides(*trees, FactsCache(None))).run().findings]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("score_cases", SHARED / "tools" / "score_cases.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.audit = findings
    return module


@pytest.mark.parametrize("expected", CASES, ids=lambda path: path.parent.name)
def test_a_merge_with_a_known_verdict(script, expected):
    assert script.score(expected.parent, []) == ("", 0)
