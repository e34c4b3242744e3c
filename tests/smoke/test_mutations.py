"""A half of entry 201 that is taken away turns the scenario red that watches it, for the right reason; minutes each."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.smoke.booting import edited, result, smoke, stack_without

pytestmark = pytest.mark.smoke

EXECUTOR = "preprocess_executor.py"
# Route of the endpoints scenario -> the plant that keeps it off the loop. In two sets, so that in each run some
# routes are harmed and the others are not.
SITES = {
    "messages": "messages-convert", "count_tokens": "count-tokens-render", "tokenize": "tokenize-text",
    "ollama": "ollama-render",
}  # fmt: skip
OTHER_SITES = {
    "messages_stream": "messages-convert-stream", "tokenize_batch": "tokenize-texts", "tokenize_chat": "tokenize-chat",
    "decisions": "decisions-encode", "responses": "responses-render", "generate": "generate-encode",
}  # fmt: skip
# One site may serve several routes.
ALSO = {"responses": {"responses_stream"}, "generate": {"generate_batch", "completions", "score"}}


def failed(table) -> set[str]:
    """The metrics whose claims failed."""
    return {claim["metric"] for claim in table["claims"] if claim["verdict"] == "failed"}


def test_without_the_copy_of_the_backend_padding_calls_are_harmed(tmp_path):
    stack = edited(stack_without(tmp_path / "stack"), EXECUTOR, "id(self._source): backend}", "id(self._source): self._source}")
    done = smoke(stack, tmp_path / "out", "borrow", "--arm", "on", "--runs", "1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert failed(result(tmp_path / "out", "borrow")) >= {"harmed_share"}


@pytest.mark.parametrize(
    "edits",
    [
        [('ThreadPoolExecutor(1, "preprocess"', 'ThreadPoolExecutor(4, "preprocess"')],
        [("self._outstanding += 1", "self._outstanding += 0"), ("self._outstanding -= 1", "self._outstanding -= 0")],
    ],
    ids=["the FIFO", "the outstanding count"],
)
def test_without_it_requests_are_overtaken(tmp_path, edits):
    stack = stack_without(tmp_path / "stack")
    for old, new in edits:
        edited(stack, EXECUTOR, old, new)
    done = smoke(stack, tmp_path / "out", "order", "--arm", "on", "--runs", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    assert failed(result(tmp_path / "out", "order")) == {"overtaken"}


def test_without_the_conversions_call_site_requests_are_overtaken(tmp_path):
    """On releases that have a hop of their own, the loop stays free; the order does not."""
    stack = stack_without(tmp_path / "stack", ["convert"])
    shutil.rmtree(stack / "entries" / "190-default-executor-hop")  # the tombstone of that hop would refuse to plant
    manifest = stack / "entries" / "201-preprocess-executor" / "entry.toml"
    manifest.write_text(re.sub(r"(?m)^requires = .*\n", "", manifest.read_text()))
    done = smoke(stack, tmp_path / "out", "order", "--arm", "on", "--runs", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    assert failed(result(tmp_path / "out", "order")) == {"overtaken"}


@pytest.mark.parametrize("sites", [SITES, OTHER_SITES], ids=["some", "the others"])
def test_a_lost_call_site_stops_the_loop_under_its_route_and_no_other(tmp_path, sites):
    stack = stack_without(tmp_path / "stack", sites.values())
    done = smoke(stack, tmp_path / "out", "endpoints", "--arm", "on", "--arm", "inline", "--case", "generation")
    assert done.returncode == 1, done.stdout + done.stderr
    table = result(tmp_path / "out", "endpoints")
    routes = set(sites).union(*(ALSO.get(route, set()) for route in sites))
    assert failed(table) == {f"gap_{route}_ms" for route in routes}, done.stdout
    assert all("gap_" in problem for problem in table["problems"])  # the answers themselves stay right
