"""Read pytest's --junitxml: one outcome for each test."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from stackctl.model.errors import StackctlError

_WORSE = ("passed", "skipped", "failed", "error")


def read_junit(path: Path) -> dict[str, str]:
    """Test (file::class::name, or class.name) to passed, skipped, failed or error; told twice, to the worse.

    Raises StackctlError for a file that is not there or no JUnit XML. Entities are refused: the file is a test run's.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StackctlError(f"no test results: {error.strerror}", str(path)) from None
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise StackctlError("holds entities, which no test run writes", str(path))
    try:
        root = ElementTree.fromstring(data)
    except ElementTree.ParseError as error:
        raise StackctlError(f"is no JUnit XML: {error}", str(path)) from None
    outcomes: dict[str, str] = {}
    for case in root.iter("testcase"):
        name, word = _name(case), _outcome(case)
        outcomes[name] = max(outcomes.get(name, word), word, key=_WORSE.index)
    return outcomes


def _outcome(case: ElementTree.Element) -> str:
    tags = {child.tag for child in case}
    for tag, word in (("error", "error"), ("failure", "failed"), ("skipped", "skipped")):
        if tag in tags:
            return word
    return "passed"


def _name(case: ElementTree.Element) -> str:
    """pytest's node id, where the file is told (junit_family=xunit1); a collection error names its module alone."""
    file, owner, name = (case.get(key) or "" for key in ("file", "classname", "name"))
    if not file:
        return ".".join(filter(None, (owner, name)))
    module = file.removesuffix(".py").replace("/", ".")
    if not owner and name == module:
        return file
    inner = owner.removeprefix(module).strip(".")
    return "::".join(filter(None, (file, *inner.split("."), name)))
