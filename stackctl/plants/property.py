"""An attribute of upstream's turned into a property of ours."""

from __future__ import annotations

from stackctl.model.stack import Entry, Plant
from stackctl.plants.definition import Definition
from stackctl.plants.kind import Example, Option
from stackctl.plants.module import is_name


class Property(Definition):
    """A getter and, if `setter` is given, a setter; upstream's own assignments then go through it."""

    name = "property"
    summary = "an attribute turned into a property"
    options = {
        "name": Option(str, "the attribute", required=True),
        "getter": Option(str, "the expression that reading it gives", required=True, code="expression"),
        "setter": Option(str, "the statement that assigning `value` runs", code="statements"),
        "doc": Option(str, "the getter's docstring"),
        "after": Option(str, "the definition in the same host that it follows"),
    }
    examples = (
        Example(
            {"name": "tok", "getter": "current(self)", "setter": "self._tok = value", "after": "first"},
            "class A:\n    def first(self):\n        pass\n\n    y = 1\n",
            "class A:\n    def first(self):\n        pass\n\n    @property\n    def tok(self):\n"
            "        return current(self)\n\n    @tok.setter\n    def tok(self, value):\n        self._tok = value\n\n"
            "    y = 1\n",
            host="pkg.mod:A",
        ),
        Example({"name": "tok", "getter": "1", "after": "gone"}, "class A:\n    x = 1\n", host="pkg.mod:A", says="the anchor is gone"),
    )  # fmt: skip

    def check(self, plant: Plant, entry: Entry) -> list[str]:
        if not is_name(plant.options["name"]):
            return [f"name {plant.options['name']!r} is not a name"]
        try:
            return super().check(plant, entry)
        except SyntaxError:
            return ["getter, setter and doc do not make a property: doc may not hold three quotes, nor getter a line break"]

    def code(self, plant: Plant) -> str:
        options = plant.options
        name = options["name"]
        doc = f'    """{options["doc"]}"""\n' if options.get("doc") else ""
        text = f"@property\ndef {name}(self):\n{doc}    return {options['getter']}\n"
        if setter := options.get("setter"):
            body = "".join(f"    {line}\n" for line in setter.strip("\n").split("\n"))
            text += f"\n@{name}.setter\ndef {name}(self, value):\n{body}"
        return text
