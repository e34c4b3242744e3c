"""Reports full of what somebody else could write into a title, a path or a line of code."""

from __future__ import annotations

from stackctl.model.report import EntryRow, Finding, LedgerRow, Report
from stackctl.model.verdict import EntryVerdict, Level, Verdict

TEXTS = (
    "plain",
    "a | b |\n| c | d |",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[click](https://evil.example) {0} {{1}} ]( \\](",
    "]]><!-- & ' \" -->",
    "line\r\n::error file=x::forged\r::set-output name=a::b\n##[error]forged",
    "%0A::warning::x, title=y: z",
    "\x00\x07\x1b[31mred\x1b]0;t\x07",
    "\ud800\udcff\ufffe\uffff",
    "right\u202eto left\u2028line\x85line\x0bline\x0cline",
    "`code` ``two`` *bold* _it_ #head ~~gone~~ $x$ \\",
    "=cmd|' /C calc'!A0",
    "x" * 20_000,
)


def report(command: str = "gate") -> Report:
    """Each text in every place of a finding, a half and an entry."""
    kinds = (Verdict.LOST, Verdict.NOT_JUDGED, Verdict.SIBLING, Verdict.MARKER)
    findings = [
        Finding(kinds[n % 4], text, f"dir/{text}", n, text, text, text, text, text, Level.NOTE if n % 5 == 4 else None)
        for n, text in enumerate(TEXTS)
    ]
    rows = [LedgerRow(Verdict.INTACT, f"p/{text}", text, n, text, f"{text}!", text) for n, text in enumerate(TEXTS)]
    entries = [EntryRow(text, text, EntryVerdict.HALF, "carry", (text,), text) for text in TEXTS]
    return Report(command, tuple(entries), tuple(rows), tuple(findings), {"plants": {"intact": 3}})
