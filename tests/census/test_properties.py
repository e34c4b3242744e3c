"""For generated modules and edits: the audit of a clean merge is clean, and a lost edit is named."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.census.merging import audit, errors, said

NAMES = ("alpha", "beta", "gamma", "delta")
STATEMENTS = (
    "x = {0}()", "return {0}(x)", "self.{0} = x", "{0}(x, k=1)", "y = [{0}, x]", "y = {{'{0}': x}}", "raise {0}(x)",
    "assert {0}, x", "import {0}", "from {0} import a as b", "del x[{0}]", "print(f'{{x}} {0}')", "x += {0}",
    "{0}: int = 3", "global {0}_g",
)  # fmt: skip
HEADERS = ("if {0}:", "for i in {0}:", "while {0}:", "with {0} as w:", "if x == '{0}':")


@st.composite
def lines(draw, depth=0):
    """The body of a function as indented lines."""
    found = []
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(NAMES))
        if depth < 2 and draw(st.integers(0, 3)) == 0:
            found.append(draw(st.sampled_from(HEADERS)).format(name))
            found += [f"    {line}" for line in draw(lines(depth=depth + 1))]
        else:
            found.append(draw(st.sampled_from(STATEMENTS)).format(name))
    return found


@st.composite
def modules(draw):
    """A module of one class with methods and a few functions."""
    names = draw(st.lists(st.sampled_from(["f", "g", "h", "k"]), min_size=1, max_size=4, unique=True))
    text = "import os\n\n\nclass C:\n    limit = 1\n"
    for name in names:
        body = "\n".join(f"        {line}" for line in draw(lines()))
        text += f"\n    def {name}(self, x):\n{body}\n"
    return text


@st.composite
def edits(draw, text):
    """One new line in a method, a new method, a new field or a new parameter."""
    kind = draw(st.sampled_from(["statement", "method", "field", "parameter", "decorator", "import"]))
    if kind == "method":
        return text + "\n    def fresh(self):\n        return self.limit\n", "C.fresh"
    if kind == "field":
        return text.replace("    limit = 1\n", "    limit = 1\n    fresh = 2\n"), "C"
    if kind == "import":
        return text.replace("import os\n", "import os\nimport fresh\n"), ""
    heads = [line for line in text.splitlines() if line.startswith("    def ")]
    head = draw(st.sampled_from(heads))
    symbol = "C." + head.split()[1].partition("(")[0]
    if kind == "parameter":
        return text.replace(head, head.replace("(self, x)", "(self, x, fresh=None)")), symbol
    if kind == "decorator":
        return text.replace(head, f"    @os.fresh\n{head}"), symbol
    return text.replace(head, f"{head}\n        fresh_call(x)"), symbol


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_clean_merge_is_clean(data):
    base = data.draw(modules())
    ours, _ = data.draw(edits(base))
    assert errors(audit(base, ours, base, ours)) == []
    assert errors(audit(base, base, ours, ours)) == []
    assert errors(audit(base, ours, ours, ours)) == []


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_lost_edit_is_named_on_either_side(data):
    base = data.draw(modules())
    ours, symbol = data.draw(edits(base))
    assert ("lost", symbol) in said(audit(base, ours, base, base))
    assert ("upstream-lost", symbol) in said(audit(base, base, ours, base))


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_any_two_modules_make_clean_controls(data):
    base, other = data.draw(modules()), data.draw(modules())
    assert errors(audit(base, other, base, other)) == []
    assert errors(audit(base, base, other, other)) == []
