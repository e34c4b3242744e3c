"""Comments, and what is none."""

from stackctl.facts.comments import host_ranges, read_comments
from stackctl.facts.statements import read_facts
from stackctl.trees.source import Source

TEXT = '''x = "# no"  # yes
y = """
# no
"""
# ----
def f():
    # why f
    return '#no'  # why not
'''


def test_comments_and_their_hosts():
    source = Source(TEXT)
    found = read_comments(source, host_ranges(read_facts(source)))
    assert [(c.host, c.text, c.line) for c in found] == [("", "yes", 1), ("f", "why f", 7), ("f", "why not", 8)]
