"""A report as the one JSON object of DESIGN section 9."""

from __future__ import annotations

import json
from typing import Any

from stackctl.model.report import Report


def render_json(report: Report) -> str:
    """The report as JSON, a row a line. Names that are not UTF-8 keep their bytes as surrogate escapes, in \\u form."""
    rows = (f"  {json.dumps(key)}: {_value(value)}" for key, value in report.to_json().items())
    return "{\n" + ",\n".join(rows) + "\n}"


def _value(value: Any) -> str:
    """A list of rows with a line for each; indenting all of it, which json does in Python, took a third of a warm verify."""
    if not isinstance(value, list) or not value:
        return json.dumps(value)
    return "[\n" + ",\n".join(f"    {json.dumps(row)}" for row in value) + "\n  ]"
