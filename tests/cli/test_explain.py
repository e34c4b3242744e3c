"""Every verdict has a page, and a wrong word gets the right one."""

import pytest

from stackctl.cli.explain import TOPICS, page_of
from stackctl.model.errors import StackctlError
from stackctl.model.verdict import Verdict


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_has_a_page(verdict):
    page = page_of(verdict)
    assert page.startswith(f"# {verdict}\n\nLevel: ")
    assert "## What to do" in page


def test_every_plant_kind_has_a_page():
    from stackctl.plants.registry import kinds

    for name in kinds():
        assert page_of(name).startswith(f"# {name}\n")


def test_every_topic_has_a_page():
    for name in TOPICS:
        assert page_of(name).startswith(f"# {name}\n")


def test_a_misspelt_word_is_answered():
    with pytest.raises(StackctlError, match="did you mean 'shadowed'"):
        page_of("shadwed")
