"""What a smoke run's folder says."""

from __future__ import annotations

import json

import pytest

from stackctl.model.errors import StackctlError
from stackctl.reports.smoke import read_smoke
from tests.support import write_files


def test_every_kind_of_result(tmp_path):
    write_files(
        tmp_path,
        {
            "a.json": json.dumps({"problems": [], "loop_lag_ms": 2.5}),
            "b.json": json.dumps({"problems": ["slow"]}),
            "c.json": "{",
            "d.json": json.dumps({"hello": 1}),
            "e.json": json.dumps({"findings": [{"level": "error", "message": "m"}, {"level": "note"}]}),
            "f.xml": "<testsuites><testsuite><testcase name='x'/><testcase name='y'><failure/></testcase></testsuite></testsuites>",
            "g.xml": "<",
            "h.xml": "<!DOCTYPE a [<!ENTITY b 'c'>]><a/>",
        },
    )
    assert list(read_smoke(tmp_path)) == [
        ("a.json", "passed", "loop_lag_ms 2.5"),
        ("b.json", "failed", "slow"),
        (
            "c.json",
            "not-judged",
            "cannot be read: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ),
        ("d.json", "not-judged", "says nothing of a result"),
        ("e.json", "failed", "m"),
        ("f.xml", "failed", "2 tests, 1 failed"),
        ("g.xml", "not-judged", "is no JUnit XML: unclosed token: line 1, column 0"),
        ("h.xml", "not-judged", "holds entities, which no test run writes"),
    ]
    with pytest.raises(StackctlError):
        list(read_smoke(tmp_path / "gone"))
