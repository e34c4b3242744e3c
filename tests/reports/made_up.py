"""A restart report of any size, made up."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from stackctl.model.report import EntryRow, Report
from stackctl.model.verdict import EntryVerdict
from stackctl.reports.restart import COMMAND, Item, Section

VERDICTS = [EntryVerdict.WHOLE] * 6 + [
    EntryVerdict.INERT,
    EntryVerdict.ADOPTED,
    EntryVerdict.HALF,
    EntryVerdict.NOT_JUDGED,
]
WORDS = ("ours", "ours", "adopted", "in part", "re-anchor", "not due", "watched")
SUBJECTS = (
    "Shard the cache over the attention group",
    "Keep request preprocessing off the event loop",
    "PCIe-IPC transport for the vocab gather",
    "Verify drafts without loss",
    "Reject a schema that no grammar accepts",
    "Read shared events in the decode graph",
)


def made_up(entries: int = 12, releases: int = 5, text: str = "") -> Report:
    """A report; `text`, if given, is every text in it."""
    numbers = range(1, entries + 1)
    rows = tuple(
        EntryRow(
            str(n),
            text or f"{SUBJECTS[n % 6]} {n}",
            VERDICTS[n % 10],
            text or "carry",
            (text or f"half-{n}",) if VERDICTS[n % 10] is EntryVerdict.HALF else (),
            text,
        )
        for n in numbers
    )
    says = (text,) if text else ("default ON, switch SGLANG_X", "whole, 3 halves", "backport of 81ac153")
    items = tuple(
        Item(
            f"{text}added-{n}",
            f"{n} {text or SUBJECTS[n % 6]}",
            says,
            text or ("added" if n % 3 else "changed"),
            n,
            "on" if n % 2 else "off",
        )
        for n in numbers
    )
    rollback = (
        Item(
            "rollback-code",
            text or "the code, to the deployed tip",
            (),
            "",
            command=text or "git checkout --detach 0123abc",
        ),
    )
    sections = [
        Section("entries", text or "Entries changed since the deployed tip", items),
        Section("inert", text or "Inert, and what wakes it", (), text or "none"),
        Section("rollback", text or "Rollback", rollback),
    ]
    return Report(COMMAND, rows, (), (), _summary(sections, rows, entries, releases, text))


def _summary(
    sections: list[Section], rows: tuple[EntryRow, ...], entries: int, releases: int, text: str
) -> dict[str, Any]:
    tip = {
        "ref": text or "next",
        "commit": text or "c8792c2f" * 5,
        "date": text or "2026-10-15T10:00:00+00:00",
        "subject": text or "the tip",
    }
    names = [text or f"0.5.{number}" for number in range(1, releases + 1)]
    matrix = {
        "releases": names,
        "rows": {str(n): [WORDS[(n + r) % 7] for r in range(releases)] for n in range(1, entries + 1)},
    }
    return {
        "label": text or "made-up-204-2026-10-15",
        "at": tip,
        "since": tip,
        "since_release": text or "0.5.22",
        "open": {"error": 1},
        "release": text or "0.5.23",
        "changes": {text or "added": entries},
        "entries": {"whole": len(rows)},
        "python": text or "/srv/venv/bin/python",
        "launch": text or "python -m sglang.launch_server --tp 8",
        "defaults": {str(n): "on" if n % 2 else "off" for n in range(1, entries + 1)},
        "sections": [asdict(section) for section in sections],
        "matrix": matrix,
        "probes": None,
    }
