"""Any document that a plan could hold comes back from its text as it was."""

from dataclasses import replace

import numpy as np
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from consistency.plans import reopened
from fakes.plans import answer
from gpuplan.domain.provenance import Estimate
from gpuplan.inputs.documents.yaml_reader import read_yaml_text
from gpuplan.report.plan.document import _Dumper

# Words that some reader of YAML takes for something else than words.
WORDS = (
    "infinity Infinity inf nan .inf -.inf .nan yes no on off null ~ true 1e3 1_000 0x1f 0o7 "
    "12:30:00 2026-11-16 = << # !x &a *a ' 1. .5 +1 e5 08 1e5 1.0e+5 @ ` % { [ ? | > - é 😀"
)
ODD = [*WORDS.split(), "", " x ", "- a", "a: b", "x\ny", "--- x", '"']
TEXT = st.one_of(
    st.sampled_from(ODD),
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp", "Cn", "Co"]), max_size=12),
)
NUMBERS = st.one_of(
    st.integers(-(10**15), 10**15),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
)
DOCUMENTS = st.recursive(
    st.one_of(TEXT, NUMBERS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text("abcdefgh_", min_size=1, max_size=6), inner, max_size=4),
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abcdefgh_", min_size=1, max_size=6), DOCUMENTS, min_size=1))
@example({"source": "infinity"})
def test_any_document_comes_back_from_its_text(data):
    text = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    assert read_yaml_text(text, name="plan.yaml").data == data


# Names are cleaned where they enter: signs that no terminal shows do not come back.
SHOWN = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=12)


@given(SHOWN, SHOWN)
@example("infinity", "nan")
def test_any_name_in_a_plan_comes_back(name, source):
    made = answer()
    pool = replace(made.plan.pools[0], source=source)
    made = replace(made, name=name, plan=replace(made.plan, pools=(pool,)))
    assert reopened(made) == made


def test_floats_of_arrays_are_written_as_floats():
    made = answer()
    odd = replace(
        made.plan,
        power_w=Estimate(
            value=np.float64(2.0), low=np.float64(1.5), high=np.float64(3.0), tier="given"
        ),
    )
    assert reopened(replace(made, plan=odd)).plan.power_w.high == 3.0
