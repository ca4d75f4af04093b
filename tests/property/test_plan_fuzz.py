"""Any line of words and any plan file gives a result, or an error that names its fault (INV-9)."""

from contextlib import suppress

import yaml
from hypothesis import given
from hypothesis import strategies as st

from fakes.plans import answer
from gpuplan.errors import InputError
from gpuplan.inputs.documents.yaml_reader import read_yaml_text
from gpuplan.inputs.plan_file import plan_of
from gpuplan.inputs.scenario.read import scenario_from_dict
from gpuplan.inputs.words.read import described_scenario
from gpuplan.report.plan.document import plan_document, plan_text
from gpuplan.studies.naming import lexicon

LEXICON = lexicon()
WORDS = st.sampled_from(
    ["Llama-3.3-70B", "6000 users", "chat", "5 requests/s", "fp8", "on H100 or L40S", "n+1", "rag",
     "ttft 2 s", "tpot 40 ms", "$20k/month", "2200/350 tokens", "20% active", "1e9 users", "",
     "-3 users", "0 users", "users", "on", "survive rack", "ttft", "9" * 30 + " users"]
)  # fmt: skip
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text(max_size=8),
    st.lists(st.integers(), max_size=2),
)


@given(st.lists(st.one_of(WORDS, st.text(max_size=12)), max_size=6).map(", ".join))
def test_any_line_is_a_scenario_or_is_refused(text):
    with suppress(InputError):
        _, found = described_scenario(text, {}, LEXICON)
        assert all(note.change for note in found.assumptions)
        scenario_from_dict(found.tree, name="line")


def paths(value, path=()):
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in entries:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from paths(item, (*path, key))


PATHS = sorted(paths(yaml.safe_load(plan_text(answer()))), key=str)


@given(st.sampled_from(PATHS), JUNK)
def test_any_damage_to_a_plan_is_read_or_refused(path, junk):
    data = yaml.safe_load(plan_text(answer()))
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = junk
    with suppress(InputError):
        found = plan_of(read_yaml_text(yaml.safe_dump(data), name="plan.yaml"))
        assert plan_document(found)


@given(st.sampled_from(PATHS))
def test_a_missing_key_is_told(path):
    data = yaml.safe_load(plan_text(answer()))
    place = data
    for step in path[:-1]:
        place = place[step]
    if isinstance(place, dict) and path[:2] != ("provenance", "scenario"):
        del place[path[-1]]
        with suppress(InputError):
            plan_of(read_yaml_text(yaml.safe_dump(data), name="plan.yaml"))
