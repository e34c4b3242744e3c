"""A report as the one JSON object of DESIGN section 9."""

from __future__ import annotations

import json

from stackctl.model.report import Report


def render_json(report: Report) -> str:
    """The report as JSON. Names that are not UTF-8 keep their bytes as surrogate escapes, in \\u form."""
    return json.dumps(report.to_json(), indent=2)
