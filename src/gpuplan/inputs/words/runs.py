"""Facts of a description → a training or fine-tuning run: model, method, amount, deadline."""

import re
from math import ceil
from typing import NamedTuple

from gpuplan.inputs.documents.document import KeyPath
from gpuplan.inputs.scenario.check_workload import interval_s
from gpuplan.inputs.words.draft import Draft
from gpuplan.inputs.words.lengths import LONGEST
from gpuplan.inputs.words.scan import Fact, Named
from gpuplan.inputs.words.targets import schedule_of
from gpuplan.inputs.words.tasks import USES
from gpuplan.units import DAY, HOUR

DEADLINE_S = {"finetuning": 7 * DAY, "pretraining": 30 * DAY}
NIGHT_S, WEEKEND_S = 12 * HOUR, 2 * DAY
AUDIO_S, AUDIO_POSITIONS = 30.0, 1500  # of a sample of speech [Radford2022]
PROMPTS = 10_000.0
PROMPTS_PER_STEP = 128.0
TUNED_TOKENS = 1e7
PAIR = 2.0  # sequences of a preference pair: the chosen response and the rejected one
_SIZE = re.compile(
    r"(\d+(?:\.\d+)?)[\s-]*b(?:illion)?(?:[\s-]+(?:dense|parameters?|params?|model|llm))*",
    re.IGNORECASE,
)


class Parts(NamedTuple):
    """Models of a service, and of the run beside it."""

    service: tuple[Named, ...]
    run: tuple[Named, ...]


def parted(models: tuple[Named, ...], run: Fact | None) -> Parts:
    """Models named after the words of the run are trained; one model is both served and trained."""
    start = run.start if run else 0
    after = tuple(named for named in models if named.start > start)
    before = tuple(named for named in models if named.start <= start)
    trained, others = after[:1] or before[:1], before or after[1:]
    return Parts(others or trained, trained)


def put_run(draft: Draft, at: KeyPath, kind: str, models: tuple[Named, ...]) -> None:
    """A training or fine-tuning run."""
    _trained_model(draft, at, kind, models)
    training: KeyPath = (*at, "training")
    _method(draft, training, kind)
    _amounts(draft, training, kind)
    draft.move("context", (*training, "sequence_tokens"))
    draft.move("request.input_tokens", (*training, "sequence_tokens"))
    draft.move_keys(at, ("training.",))
    usual_s = put_schedule(draft, at, DEADLINE_S[kind])
    # Who has hardware of their own asks how long it takes, not for a rented fleet beside it.
    is_open = "owned" in draft.facts or _as_fast_as_can_be(draft)
    if not is_open or {"deadline_s", "span_s"} & set(draft.facts):
        put_deadline(draft, (*training, "deadline_days"), DAY, usual_s)


def put_reinforcement(draft: Draft, models: tuple[Named, ...]) -> None:
    """Reinforcement learning: rollouts of prompts by an engine, and training on them."""
    at: KeyPath = ("workloads", 0)
    draft.take("use")
    draft.tree["workloads"] = [{"name": "run", "kind": "reinforcement_learning"}]
    put_model(draft, at, models[0] if models else None, USES["summarization"].model, "usual")
    rollout, training = (*at, "rollout"), (*at, "training")
    length = draft.facts.get("request.input_tokens")
    if length is not None and not re.search("prompt|input|isl", length.words, re.IGNORECASE):
        draft.facts.setdefault("request.output_tokens", draft.facts.pop("request.input_tokens"))
    draft.move("request.input_tokens", (*rollout, "input_tokens"))
    draft.move("request.output_tokens", (*rollout, "output_tokens"))
    of_one = draft.facts.get("amount.token")
    if of_one is not None and "amount.request" in draft.facts and of_one.value < LONGEST:
        draft.facts.setdefault("request.output_tokens", draft.facts.pop("amount.token"))
        draft.move("request.output_tokens", (*rollout, "output_tokens"))
    each = _prompt_tokens(draft, rollout)
    fact = draft.take("amount.request") or draft.take("amount.sample") or draft.take("amount.doc")
    steps = draft.take("request.steps")
    if steps is not None:
        of_step = fact.value if fact is not None else PROMPTS_PER_STEP
        words = f"{steps.words}, {fact.words}" if fact is not None else steps.words
        draft.put((*training, "tokens"), steps.value * of_step * each, words)
    elif fact is not None:
        draft.put((*training, "tokens"), fact.value * each, fact.words)
    elif not draft.move("amount.token", (*training, "tokens")):
        why = "10,000 prompts, as none were counted"
        draft.assume((*training, "tokens"), PROMPTS * each, "tokens of all rollouts", why)
    draft.move_keys(at, ("training.",))
    _as_fast_as_can_be(draft)
    put_deadline(draft, (*training, "deadline_days"), DAY, DEADLINE_S["finetuning"])


def _prompt_tokens(draft: Draft, rollout: KeyPath) -> float:
    """Tokens of all samples of one prompt, as written or as usual."""
    each_of = "rollouts"
    if "amount.request" in draft.facts and "amount.sample" in draft.facts:
        each_of = "amount.sample"  # 10k prompts, 16 samples each
    draft.move(each_of, (*rollout, "samples_per_prompt"))
    for key, value in (("input_tokens", 500), ("output_tokens", 2000), ("samples_per_prompt", 8)):
        what, why = f"{key.replace('_', ' ')} of a rollout", "usual for reinforcement learning"
        draft.assume((*rollout, key), value, what, why)
    known = draft.tree["workloads"][0]["rollout"]
    tokens = known["input_tokens"] + known["output_tokens"]
    return float(known["samples_per_prompt"]) * float(tokens)


def _trained_model(draft: Draft, at: KeyPath, kind: str, models: tuple[Named, ...]) -> None:
    default = USES["chat"].model if kind == "pretraining" else USES["summarization"].model
    size = draft.take("params_b")
    bare = _SIZE.fullmatch(models[0].words) if models and kind == "pretraining" else None
    draft.move("active_params_b", (*at, "model", "active_params_b"))
    if size is not None and not models:
        draft.put((*at, "model", "params_b"), size.value, size.words)
    elif bare is not None:
        draft.put((*at, "model", "params_b"), float(bare[1]), models[0].words)
    else:
        put_model(draft, at, models[0] if models else None, default, "usual for training")


def put_model(draft: Draft, at: KeyPath, named: Named | None, default: str, why: str) -> None:
    """The model that is named, or the usual one."""
    path = (*at, "model")
    if named is None:
        draft.assume(path, default, "model", f"no model was named; {why}")
        return
    draft.put(path, named.model.name, named.words)
    if named.model.why:
        draft.note("model", named.model.name, named.model.why, "name another, or --model")


def _method(draft: Draft, training: KeyPath, kind: str) -> None:
    full = draft.take("full")
    if kind != "finetuning":
        return
    if full is not None and "method" not in draft.facts:
        draft.put((*training, "method"), "full", full.words)
    elif not draft.move("method", (*training, "method")):
        why = "LoRA is a choice of quality: never made unasked"
        draft.assume((*training, "method"), "full", "method of fine-tuning", why)


def _amounts(draft: Draft, training: KeyPath, kind: str) -> None:
    """Tokens or samples; those of every night are the run of one night."""
    draft.move("amount.token", (*training, "tokens"))
    usual = draft.take("usual_epochs")
    if usual is not None and "training.epochs" not in draft.facts:
        draft.put((*training, "epochs"), usual.value, usual.words)
    for unit, key in (("token", "tokens"), ("doc", "samples"), ("request", "samples")):
        known = draft.value(f"rate.{unit}")
        if unit == "request" and known is not None and known.period_s < DAY:
            continue  # of a service beside the run
        rate = draft.take(f"rate.{unit}")
        if rate is not None and not draft.has((*training, key)):
            value = round(rate.value.per_s * rate.value.period_s, 6)
            draft.put((*training, key), value, rate.words)
            draft.facts["schedule"] = rate._replace(value=schedule_of(rate.value.period_s))
    for unit in ("sample", "doc", "image", "request"):
        draft.move(f"amount.{unit}", (*training, "samples"))
    audio = draft.take("amount.audio_s")
    if audio is not None:
        draft.put((*training, "samples"), ceil(audio.value / AUDIO_S), audio.words)
        why = "recordings are cut into pieces of 30 s, 1,500 positions each"
        draft.assume((*training, "sequence_tokens"), AUDIO_POSITIONS, "positions of a sample", why)
    _pairs(draft, training)
    is_counted = any(draft.has((*training, key)) for key in ("tokens", "samples"))
    if not is_counted and kind == "finetuning":
        why = "no amount was named: some 10,000 examples of 1,000 tokens"
        draft.assume((*training, "tokens"), TUNED_TOKENS, "tokens of the run", why)


def _pairs(draft: Draft, training: KeyPath) -> None:
    """Preference pairs as samples."""
    pairs = draft.take("pairs")
    if pairs is not None:
        draft.put((*training, "samples"), pairs.value * PAIR, pairs.words)
        why = "chosen and rejected response of each pair are a sample each; the forward pass of a "
        why += "reference model is not counted: up to a third more, unless it is computed before"
        draft.note("preference pairs", f"{pairs.value * PAIR:g} samples", why, '"… examples"')


def _as_fast_as_can_be(draft: Draft) -> bool:
    """Whether it is asked how long a run takes on so much hardware: all of it is then used."""
    limit = draft.facts.get("policy.max_accelerators")
    if limit is None or draft.value("question") != "duration":
        return False
    draft.facts.setdefault("objective", limit._replace(value="time", words="how long"))
    return True


def put_schedule(draft: Draft, at: KeyPath, usual_s: float) -> float:
    """How often the run starts, where that is said; the time that one of them has, unless said."""
    night = draft.take("nightly")
    is_again = night is not None and re.search(r"nightly|every|each", night.words, re.IGNORECASE)
    if night is not None and is_again:
        draft.facts.setdefault("schedule", night._replace(value="daily"))
    fact = draft.facts.get("schedule")
    if fact is not None:
        draft.move("schedule", (*at, "schedule"))
        usual_s = min(usual_s, interval_s(fact.value) or usual_s)
    is_night = night is not None or (fact is not None and "night" in fact.words.lower())
    if fact is not None and "weekend" in fact.words.lower().replace("-", ""):
        return WEEKEND_S
    return NIGHT_S if is_night else usual_s


def put_deadline(draft: Draft, path: KeyPath, unit_s: float, usual_s: float) -> None:
    """The deadline that is stated, or the usual one."""
    if "deadline_s" not in draft.facts and "span_s" in draft.facts:
        draft.facts["deadline_s"] = draft.facts.pop("span_s")
    if draft.take("evening"):
        why = "work of a day that is due at an hour of the next begins in the evening"
        draft.note("start of the batch", "20:00", why, '"in … hours"')
    if not draft.move("deadline_s", path, 1 / unit_s):
        why = "no deadline was named"
        draft.assume(path, usual_s / unit_s, f"deadline ({path[-1]})", why)
