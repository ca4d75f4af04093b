"""Whatever is typed: an answer or an InputError, never a traceback; overlays keep their word."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.catalog.families import FAMILIES
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.catalog.overlay import apply_overlay, overlay_keys
from gpuplan.catalog.schema import SECTIONS
from gpuplan.errors import InputError

CATALOG = read_catalog()
IDS = sorted(CATALOG.accelerators)
WORDS = sorted({word for family in FAMILIES for word in family.words})

near_names = st.lists(
    st.sampled_from(
        [*WORDS, *IDS, "8x", "x8", ":4", "80gb", "sxm", "pcie", "(", ")", "-", " ", "nvidia"]
    ),
    max_size=5,
).map("".join)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=8) | st.sampled_from([*SECTIONS, *IDS]), inner, max_size=3
        )
    ),
    max_leaves=10,
)
entries = st.dictionaries(
    st.sampled_from(["like", "source", *sorted(overlay_keys("accelerator"))]),
    st.sampled_from(IDS) | st.floats() | st.integers() | st.text(max_size=5),
    max_size=4,
)

documents = st.fixed_dictionaries(
    {
        "accelerators": st.dictionaries(
            st.sampled_from(IDS) | st.text(string.ascii_letters, max_size=5), entries, max_size=3
        )
    }
)


@given(text=st.text(max_size=60) | near_names)
def test_any_name_gives_an_accelerator_or_an_input_error(text: str) -> None:
    try:
        choice = find_accelerator(text, CATALOG)
    except InputError:
        return
    assert choice.accelerator.id in CATALOG.accelerators
    assert choice.n_accelerators >= 1


@given(
    item=st.sampled_from(IDS),
    n=st.integers(1, 99_999),
    form=st.sampled_from(["{n}x{i}", "{i}:{n}", "{n} x {i}"]),
)
def test_a_count_never_changes_the_accelerator(item: str, n: int, form: str) -> None:
    choice = find_accelerator(form.format(n=n, i=item), CATALOG)
    assert (choice.accelerator.id, choice.n_accelerators) == (item, n)
    # Of announced hardware an answer says that its figures may change, and nothing else.
    assert [a.value for a in choice.assumptions] == ["announced"] * (
        choice.accelerator.lifecycle.launched == "announced"
    )


@given(item=st.sampled_from(IDS), data=st.data())
def test_case_and_separators_do_not_matter(item: str, data: st.DataObject) -> None:
    separator = data.draw(st.sampled_from(["-", "_", " ", ""]))
    text = "".join(data.draw(st.sampled_from([c.lower(), c.upper()])) for c in item)
    assert find_accelerator(text.replace("-", separator), CATALOG).accelerator.id == item


@given(document=plain | documents)
def test_any_document_is_laid_or_refused(document: object) -> None:
    try:
        catalog = apply_overlay(CATALOG, document, overlay="any.yaml")
    except InputError:
        return
    assert set(CATALOG.accelerators) <= set(catalog.accelerators)


@given(item=st.sampled_from(IDS), share=st.floats(0.5, 1.0))
def test_what_an_overlay_says_is_what_comes_out(item: str, share: float) -> None:
    limit_w = CATALOG.accelerators[item].power.limit_w
    if limit_w is None or limit_w * share < 36:
        return  # below what any board runs at
    value = round(limit_w * share, 1)
    document = {"accelerators": {item: {"tdp_w": value}}}
    catalog = apply_overlay(CATALOG, document, overlay="any.yaml")
    assert catalog.accelerators[item].power.limit_w == pytest.approx(value)
    (override,) = catalog.overrides
    assert override.item == item
    untouched = {i: a for i, a in catalog.accelerators.items() if i != item}
    assert untouched == {i: a for i, a in CATALOG.accelerators.items() if i != item}
