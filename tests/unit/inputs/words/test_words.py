"""Descriptions in words: phrases in any order, each read once or named."""

import json
import random
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.errors import InputError
from gpuplan.inputs.scenario.read import scenario_from_dict, with_changes
from gpuplan.inputs.words.flags import still_described
from gpuplan.inputs.words.read import described_scenario
from gpuplan.inputs.words.targets import days_left, days_until
from gpuplan.inputs.words.tasks import USES
from gpuplan.studies.naming import lexicon
from unit.inputs.words.table import CHAT, LOADS, REFUSED, RUN, RUNS, SENTENCES, SERVICE, TERMS, W

LEXICON = lexicon()
# Sentences that were written with their right readings before they were read for the first time.
LOTS = [
    json.loads(line)
    for line in Path(__file__).with_name("lots.jsonl").read_text("utf-8").splitlines()
]
PLAIN = "Qwen3-32B, chat, 10 users, "


def described(text, **flags):
    return described_scenario(text, flags, LEXICON)[1]


def at(tree, path):
    for step in path.split("."):
        tree = tree[int(step)] if step.isdigit() else tree[step]
    return tree


def check(text, expected):
    tree = described(text).tree
    scenario_from_dict(tree, name="words")
    for path, value in expected.items():
        found = at(tree, path)
        assert found == (pytest.approx(value) if isinstance(value, float | int) else value), path


@pytest.mark.parametrize(("words", "key", "value"), LOADS, ids=lambda x: str(x)[:40])
def test_loads(words, key, value):
    check(CHAT + words, {W + key: value})


@pytest.mark.parametrize(("words", "key", "value"), SERVICE, ids=lambda x: str(x)[:40])
def test_requests_and_targets(words, key, value):
    check(PLAIN + words, {W + key: value, W + "demand.users": 10})


@pytest.mark.parametrize(("words", "key", "value"), TERMS, ids=lambda x: str(x)[:40])
def test_terms(words, key, value):
    check(PLAIN + words, {key: value, W + "demand.users": 10})


@pytest.mark.parametrize(("words", "key", "value"), RUNS, ids=lambda x: str(x)[:40])
def test_runs(words, key, value):
    check(RUN + words, {W + key: value})


@pytest.mark.parametrize(("words", "expected"), SENTENCES, ids=lambda x: str(x)[:50])
def test_sentences(words, expected):
    check(words, expected)


@pytest.mark.parametrize("row", LOTS, ids=lambda row: row["words"][:50])
def test_sentences_of_users(row):
    found, reads = described(row["words"]), dict(row["reads"])
    assert found.question == reads.pop("question", found.question)
    check(row["words"], reads)


def test_a_hundred_and_fifty_phrases_and_more():
    assert len(LOADS) + len(SERVICE) + len(TERMS) + len(RUNS) + len(SENTENCES) >= 150


@pytest.mark.parametrize(("words", "said"), REFUSED, ids=lambda x: str(x)[:40])
def test_what_cannot_be_placed_is_named(words, said):
    with pytest.raises(InputError) as caught:
        described(words)
    assert said in str(caught.value)


def test_words_without_weight_are_named_and_the_plan_goes_on():
    found = described("Qwen3-32B, 100 users, purple unicorns")
    [note] = [each for each in found.assumptions if each.what == "words not understood"]
    assert note.value == "'purple unicorns' at character 23"
    assert at(found.tree, W + "demand.users") == 100


# One phrase of each key: several would contradict each other.
INDEPENDENT = list(
    {
        key: words
        for words, key, _ in [*SERVICE, *TERMS]
        if not key.startswith(("slo.e2e", "request.turns", "slo.itl"))
    }.values()
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(INDEPENDENT), max_size=6, unique=True), st.randoms())
def test_the_order_of_phrases_does_not_matter(chosen, chance: random.Random):
    phrases = ["Qwen3-32B", "chat", "10 users", *chosen]
    try:
        first = dict(described(", ".join(phrases)).tree)
    except InputError:
        return  # two of them contradict each other
    chance.shuffle(phrases)
    second = dict(described(", ".join(phrases)).tree)
    first["name"] = second["name"] = ""
    assert _sorted_names(second) == _sorted_names(first)


def _sorted_names(value):
    """Lists of names in one order: of several names the order says nothing."""
    if isinstance(value, dict):
        return {key: _sorted_names(item) for key, item in value.items()}
    is_names = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return sorted(value) if is_names else value


NONSENSE = st.text(alphabet="bcdfjkvwxz", min_size=4, max_size=8)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(INDEPENDENT), max_size=4, unique=True), NONSENSE, st.booleans())
def test_nothing_typed_is_dropped_in_silence(chosen, strange, has_number):
    word = f"7{strange}" if has_number else strange
    text = ", ".join(["Qwen3-32B", "chat", "10 users", *chosen, word])
    said = ""
    try:
        said = " ".join(note.value for note in described(text).assumptions)
    except InputError as error:
        said = str(error)
    assert word in said or "contradicts" in said


@pytest.mark.parametrize(("words", "key", "value"), [*SERVICE, *TERMS], ids=lambda x: str(x)[:40])
def test_every_stated_phrase_is_shown_as_understood(words, key, value):
    shown = described(PLAIN + words).understood
    paths = [each.key.replace("[", ".").replace("]", "") for each in shown]
    assert any(path in (key, W + key) for path in paths), paths


def test_flags_win_over_words_and_over_what_is_usual():
    found = described("Qwen3-32B, 10 users, chat", users=99.0, ttft_p95_ms=800.0, input_tokens=123)
    work = found.tree["workloads"][0]
    assert work["demand"]["users"] == 99
    assert work["slo"] == {"ttft_p95_ms": 800, "tpot_p95_ms": USES["chat"].slo["tpot_p95_ms"]}
    assert work["request"]["input_tokens"] == 123


def test_a_model_may_come_from_its_flag_alone():
    found = described("10 users, chat", model="llama 70b")
    assert found.tree["workloads"][0]["model"] == "llama 70b"


def test_every_assumption_says_how_to_change_it():
    notes = described("Qwen3-32B, 10 users, agents").assumptions
    assert {"--input-tokens", "--output-tokens", "--ttft-p95-ms"} <= {n.change for n in notes}
    assert all(note.why and note.change for note in notes)


@pytest.mark.parametrize("use", sorted(USES))
def test_every_use_makes_a_scenario_that_is_read(use):
    tree = described(f"10 users, {use}").tree
    assert scenario_from_dict(tree, name="words").workloads[0].name == use


def test_a_target_for_the_whole_response_stands_alone():
    work = described("Qwen3-32B, 10 users, chat", e2e_p95_s=9.0).tree["workloads"][0]
    assert work["slo"] == {"e2e_p95_s": 9.0}


@pytest.mark.parametrize(("day", "days"), [(16, 4), (19, 1), (20, 7), (21, 6)])
def test_a_weekday_is_the_next_of_its_name(day, days):
    assert days_until("Friday", date(2026, 11, day)) == days
    assert at(described("finetune Qwen3-8B on 10M tokens by friday").tree, W + "training.method")


def test_words_of_runs_are_named_where_nothing_is_trained():
    notes = described("Qwen3-32B, chat, 10 users, full").assumptions
    assert any("'full'" in note.value for note in notes)


def test_another_currency_is_told_with_its_rate_and_day():
    found = described(CHAT + "5 requests/s, budget EUR 3000")
    [note] = [each for each in found.assumptions if each.what == "exchange rate"]
    assert "1 EUR = 1.168" in note.value
    assert "2026-04-13" in note.why


@pytest.mark.parametrize(
    ("words", "ttft_ms"),
    [
        ("128k context", 33_500),
        ("128k context, 50% prefix cache hits", 17_500),
        ("1k in 5k out", 2000),
    ],
)
def test_a_longer_prompt_has_more_time(words, ttft_ms):
    assert at(described(PLAIN + words).tree, W + "slo.ttft_p95_ms") == ttft_ms


def test_a_longer_prompt_by_a_flag_has_more_time_too():
    tree = described(CHAT + "5 requests/s", input_tokens=42_000).tree
    assert at(tree, W + "slo.ttft_p95_ms") == 12_000


def test_larger_pieces_have_more_time():
    whole = described("SDXL, 5 images/s, 1024x1024, 28 steps").tree
    larger = described("SDXL, 5 images/s, 2048x1024, 56 steps").tree
    assert at(larger, W + "slo.e2e_p95_s") == 4 * at(whole, W + "slo.e2e_p95_s")


def test_requests_in_flight_and_agents_are_taken_without_a_think_time_and_the_plan_says_so():
    for words in ("200 concurrent requests", "300 coding agents"):
        tree = described(CHAT + words).tree
        assert "think_time_s" not in tree["workloads"][0]["request"]
        notes = scenario_from_dict(tree, name="words").assumptions
        [note] = [n for n in notes if n.change == "workloads[0].request.think_time_s"]
        assert note.value == "0"
    assert described(CHAT + "500 concurrent users", think_time_s=5.0).tree["workloads"][0][
        "request"
    ]["think_time_s"] == pytest.approx(5.0)


def test_further_stages_carry_the_rate_of_the_closed_loop_before_them():
    words = (
        "RAG with Qwen3-32B and bge-m3, 600 concurrent users, TTFT 2 s, TPOT 50 ms, 4k in 200 out"
    )
    first, stage = described(words).tree["workloads"]
    # Half of 2 s + 200 x 50 ms, and 30 s of reading.
    assert stage["demand"] == {"requests_per_s": pytest.approx(600 / (6.0 + 30.0))}
    assert first["demand"] == {"concurrent_requests": 600}


def test_the_end_of_a_month_or_year_is_counted_from_today():
    assert days_left("month", date(2026, 11, 18)) == 12
    assert days_left("month", date(2026, 12, 31)) == 1
    assert days_left("year", date(2026, 11, 18)) == 43
    tree = described("transcribe 200 hours of audio by the end of the month").tree
    assert at(tree, W + "batch.deadline_h") == 24 * days_left("month", date.today())


@pytest.mark.parametrize(
    ("words", "question"),
    [
        ("is one 4090 enough for qwen3 14b with 5 people chatting?", "enough"),
        ("Can 4 x A100 80GB serve mistral large 2 for 100 concurrent users?", "enough"),
        ("deepseek-v3 in int4 on 8xA100 80GB feasible?", "enough"),
        ("H100 vs MI300X for Llama-3.1-405B fp8 at 10 requests per second", "choice"),
        ("What's cheaper for llama-3-8b at 100 QPS: L4 or A10G on AWS?", "choice"),
        ("how long to fine-tune Mistral 7B with QLoRA on 20M tokens on a 4090?", "duration"),
        ("GRPO on Qwen2.5-7B, 10k prompts; how many days on 16 A100s?", "duration"),
        ("How much would it cost to embed 50 million documents with bge-m3?", "cost"),
        ("What will it cost per month to host gpt-oss-120b for 4000 users?", "cost"),
        ("How many H100s do I need to serve Llama 3.3 70B to 2k users?", ""),
        ("2x 3090, llama 3.3 70b q4, single user, how many tok/s", "speed"),
        ("Qwen3-32B on H100 or H200, 10 users", "choice"),
        ("Qwen3-32B, 10 users, on 4 H100", ""),
        ("we own 8 L40S and can burst to spot for llama 3.1 8b, 60 rps", ""),
    ],
)
def test_what_is_asked_is_known(words, question):
    assert described(words).question == question


@pytest.mark.parametrize(
    "words",
    [
        "we've got two DGX H100 boxes, what can they carry with deepseek v3",
        "Price per million tokens if I self-host DeepSeek-V3 on 8 H200?",
        "a single L4: how many streams of Qwen2.5-VL-3B at 1 frame per second?",
    ],
)
def test_the_most_that_hardware_carries_is_asked_for_in_many_ways(words):
    assert described(words).asks_largest


def test_what_a_change_sets_is_neither_understood_nor_assumed_any_more():
    document, found = described_scenario("Llama-3.3-70B chat for 6000 users", {}, LEXICON)
    changes = ["users=9", "workloads[0].slo.ttft_p95_ms=500", "workloads[0].model=Qwen/Qwen3-8B"]
    made = still_described(found, with_changes(document, changes))
    gone = {note.what for note in found.assumptions} - {note.what for note in made.assumptions}
    assert gone == {"model", "SLO ttft_p95_ms"}
    assert {each.key for each in made.understood} == {"use case"}
    assert made.tree["workloads"][0]["demand"]["users"] == 9
