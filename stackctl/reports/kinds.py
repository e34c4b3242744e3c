"""The page on one plant kind: what it does, its keys, and its own examples, good and refused."""

from __future__ import annotations

import inspect
from typing import Any

from stackctl.plants.kind import Example, Kind


def kind_page(kind: Kind) -> str:
    """The kind's documentation as Markdown, made from what the kind itself carries."""
    parts = [f"# {kind.name}", f"{kind.summary[0].upper()}{kind.summary[1:]}.", inspect.getdoc(type(kind)) or "", _keys(kind)]
    parts += [_example(kind, example) for example in kind.examples]
    return "\n\n".join(filter(None, parts)) + "\n"


def _keys(kind: Kind) -> str:
    rows = [f"- `{name}`{' (required)' if option.required else ''}: {option.says}" for name, option in kind.options.items()]
    return "\n".join(["## Keys", "", *rows])


def _example(kind: Kind, example: Example) -> str:
    title = "Example" if example.after else "Refused"
    says = f": {example.says}" if example.says else ""
    lines = ["```toml", "[[plant]]", 'id = "example"', f'kind = "{kind.name}"']
    lines += [f'host = "{example.host}"'] if example.host else []
    lines += [f"{key} = {_toml(value)}" for key, value in example.options.items()]
    blocks = [f"## {title}{says}", "\n".join([*lines, "```"])]
    for name, text in (("before", example.before), ("after", example.after)):
        if text:
            blocks.append(f"```python\n# {name}\n{text}```")
    if not example.after:
        blocks.append(f"Verdict: `{example.verdict}`.")
    return "\n\n".join(blocks)


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return f'"""\n{value}"""' if "\n" in value else f'"{value}"' if '"' not in value else f"'{value}'"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }" if value else "{}"
    return f"[{', '.join(map(_toml, value))}]" if isinstance(value, list) else str(value)
