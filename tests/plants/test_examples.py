"""Every kind's own examples: what they promise is what judging and planting do."""

from __future__ import annotations

import pytest

from stackctl.model.verdict import Verdict
from stackctl.plants.errors import Unplantable
from stackctl.plants.registry import kinds
from tests.plants.planting import MODULE, of_example

EXAMPLES = [(name, index) for name, kind in kinds().items() for index in range(len(kind.examples))]


def _judged(bed):
    """The judgement; what the kind raises counts as one, as it does for `verify`."""
    try:
        return bed.judge().verdict
    except Unplantable as error:
        return error.verdict


@pytest.mark.parametrize(("name", "index"), EXAMPLES, ids=[f"{name}-{index}" for name, index in EXAMPLES])
def test_example_is_true(name, index, tmp_path):
    example = kinds()[name].examples[index]
    bed = of_example(tmp_path, name, example)
    assert kinds()[name].check(bed.plant, bed.entry) == []
    assert _judged(bed) is example.verdict
    if not example.after:
        _is_refused(bed)
        return
    bed.do_plant()
    assert bed.judge().verdict is Verdict.INTACT
    assert bed.read(bed.judge().path).decode() == example.after
    planted = bed.view.snapshot()
    bed.do_plant()
    assert bed.view.snapshot() == planted


def _is_refused(bed):
    before = bed.view.snapshot()
    with pytest.raises(Unplantable):
        bed.do_plant()
    assert bed.view.snapshot() == before


@pytest.mark.parametrize("name", kinds())
def test_every_kind_has_a_good_and_a_refused_example(name, tmp_path):
    refused = good = 0
    for index, example in enumerate(kinds()[name].examples):
        bed = of_example(tmp_path / str(index), name, example)
        try:
            bed.do_plant()
            good += 1
        except Unplantable:
            refused += 1
    assert good and refused, f"{good} good, {refused} refused"


@pytest.mark.parametrize("name", kinds())
def test_every_example_gives_the_required_keys(name):
    kind = kinds()[name]
    required = {key for key, option in kind.options.items() if option.required}
    for example in kind.examples:
        assert required <= example.options.keys() <= kind.options.keys()
        assert bool(example.host) == (kind.host == "module") or kind.host == "optional"


def test_a_module_of_an_example_is_where_its_host_says():
    hosts = {example.host.partition(":")[0] for kind in kinds().values() for example in kind.examples if example.host}
    assert {host.replace(".", "/") + ".py" for host in hosts} == {MODULE}
