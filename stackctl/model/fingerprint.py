"""One finding's identity from run to run: what it is about, and not on which line it stands today."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

from stackctl.model.report import Finding

# Numbers outside of quoted code are lines and counts, which move with every commit.
_QUOTED_OR_NUMBER = re.compile(r"`[^`]*`|\b\d+\b")
_LENGTH = 32


def fingerprint(finding: Finding) -> str:
    """A digest of kind, path, symbol, half and message; lines, counts and evidence do not count."""
    message = _QUOTED_OR_NUMBER.sub(lambda found: found[0] if found[0].startswith("`") else "#", finding.message)
    words = [str(finding.kind), finding.path, finding.symbol, finding.entry, finding.plant, message]
    return hashlib.sha256("\0".join(words).encode(errors="surrogatepass")).hexdigest()[:_LENGTH]


def fingerprints(findings: Iterable[Finding]) -> list[str]:
    """The fingerprint of each finding with the number of its occurrence, "digest:1": all of them differ."""
    seen: Counter[str] = Counter()
    marks = []
    for finding in findings:
        digest = fingerprint(finding)
        seen[digest] += 1
        marks.append(f"{digest}:{seen[digest]}")
    return marks
