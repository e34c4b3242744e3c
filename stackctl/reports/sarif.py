"""A report as SARIF 2.1.0, for GitHub code scanning and every other reader of it.

GitHub closes an alert when its fingerprint is not in the newest run of the same category, so a clean run is
written too, with no results, and a fingerprint never depends on a line.
Limits: https://docs.github.com/en/code-security/code-scanning/integrating-with-code-scanning/sarif-support
"""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from stackctl import __version__
from stackctl.model.fingerprint import fingerprints
from stackctl.model.report import Finding, Report
from stackctl.model.verdict import Verdict
from stackctl.reports.importance import by_importance
from stackctl.reports.words import clean, cut, relative_uri, sentence, title

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_RESULTS = 25_000  # a run; GitHub shows the 5,000 that are most severe, so those come first
_PACKED = 10_000_000  # bytes, gzipped
_DESCRIPTION = 1_000  # characters of a rule's description: 1,024 with GitHub
_MESSAGE = 4_000
_PLACEHOLDER = re.compile(r"\{(\d+)\}")


def render_sarif(report: Report) -> str:
    """The report as one SARIF run, within GitHub's limits: what is left out is the least important."""
    shown = by_importance(report.findings)[:_RESULTS]
    while len(gzip.compress((text := _text(report, shown)).encode(), 1)) > _PACKED and shown:
        shown = shown[: len(shown) // 2]
    return text


def _text(report: Report, shown: list[Finding]) -> str:
    return json.dumps(_log(report, shown), separators=(",", ":"))


def _log(report: Report, shown: list[Finding]) -> dict[str, Any]:
    kinds = sorted({finding.kind for finding in shown})
    driver: dict[str, Any] = {"name": "stackctl", "version": __version__, "rules": [_rule(kind) for kind in kinds]}
    marks = dict(zip(map(id, shown), fingerprints(shown), strict=True))
    run = {
        "tool": {"driver": driver},
        # GitHub's category: runs of one command replace each other, and no other tool's.
        "automationDetails": {"id": f"stackctl/{report.command}/"},
        "invocations": [_invocation(report, len(report.findings) - len(shown))],
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, kinds.index(finding.kind), marks[id(finding)]) for finding in shown],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _invocation(report: Report, left_out: int) -> dict[str, Any]:
    """What could not be judged is not a result alone: the run as a whole did not do what it was asked."""
    unjudged = [finding for finding in report.findings if finding.kind is Verdict.NOT_JUDGED]
    notes = [_notification(clean(sentence(finding)), "error") for finding in unjudged]
    if left_out:
        notes.append(_notification(f"{left_out} less important findings are left out: the limits of a run", "warning"))
    whole = not unjudged and all(row.verdict is not Verdict.NOT_JUDGED for row in report.ledger)
    found: dict[str, Any] = {"executionSuccessful": whole, "exitCode": int(report.exit)}
    return {**found, "toolExecutionNotifications": notes} if notes else found


def _notification(text: str, level: str) -> dict[str, Any]:
    return {"level": level, "message": {"text": _plain(text)}}


def _rule(kind: Verdict) -> dict[str, Any]:
    page = _page(kind)
    says = _says(page) or str(kind)
    rule: dict[str, Any] = {
        "id": str(kind),
        "name": "".join(word.capitalize() for word in kind.split("-")),
        "shortDescription": {"text": cut(says.partition(". ")[0].rstrip(".") + ".", _DESCRIPTION)},
        "fullDescription": {"text": cut(says, _DESCRIPTION)},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": str(kind.level)},
        "properties": {"tags": ["merge"], "precision": "high"},
    }
    return {**rule, "helpUri": uri} if (uri := _help_uri(kind)) else rule


def _page(kind: Verdict) -> str:
    """The page that `stackctl explain` shows."""
    page = files("stackctl.census") / "explain" / f"{kind}.md"
    return page.read_text(encoding="utf-8") if page.is_file() else f"# {kind}\n"


def _says(page: str) -> str:
    """The first paragraph below "What it says"."""
    return " ".join(page.partition("## What it says")[2].strip().partition("\n\n")[0].split())


def _help_uri(kind: Verdict) -> str:
    """Where the page is on the web: STACKCTL_PAGES, which action.yml sets to its own repository's pages."""
    base = os.environ.get("STACKCTL_PAGES", "")
    return f"{base.rstrip('/')}/{kind}.md" if base.startswith("https://") else ""


def _result(finding: Finding, index: int, mark: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": str(finding.kind),
        "ruleIndex": index,
        "level": str(finding.severity),
        "message": {"text": _plain(cut(clean(f"{title(finding)}: {sentence(finding)}"), _MESSAGE))},
        "locations": [_location(finding)],
        # The one that GitHub reads, and the same under a name of our own for the others.
        "partialFingerprints": {"primaryLocationLineHash": mark, "stackctl/v1": mark},
    }
    names = {"entry": finding.entry, "plant": finding.plant, "action": finding.action or finding.kind.action}
    return {**result, "properties": {key: clean(value) for key, value in names.items() if value}}


def _location(finding: Finding) -> dict[str, Any]:
    """GitHub shows no result without a file and a line: what is about the stack as a whole stands on its stack.toml."""
    place = {
        "artifactLocation": {"uri": relative_uri(finding.path) or "stack.toml", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": max(finding.line, 1)},
    }
    if not finding.symbol:
        return {"physicalLocation": place}
    return {"physicalLocation": place, "logicalLocations": [{"fullyQualifiedName": clean(finding.symbol)}]}


def _plain(text: str) -> str:
    """Text in which a SARIF reader finds no link and no placeholder (SARIF 2.1.0, 3.11.5 and 3.11.6)."""
    if "](" in text:
        text = text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    return _PLACEHOLDER.sub(r"{{\1}}", text)


def results_of(text: str) -> Iterable[dict[str, Any]]:
    """The results of a SARIF text, for those who compare two runs."""
    return [result for run in json.loads(text)["runs"] for result in run.get("results", ())]
