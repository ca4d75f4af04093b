"""Candidates of one served language model: proposed, and pruned with reasons."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from gpuplan.calibration.inference.eras import version_pair
from gpuplan.candidates import prune as cut
from gpuplan.candidates.propose import (
    ProposalSpec,
    n_in_domain,
    n_in_server,
    on_shares,
    over_servers,
    propose,
    shares_of,
    with_stages,
    with_wider_experts,
)
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.performance import EngineChoice
from gpuplan.domain.inference.serving import EngineSettings
from gpuplan.domain.model.precision import NumberFormat, format_named
from gpuplan.domain.plan.candidate import Candidate, Pruned, Rejection
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.errors import Problem
from gpuplan.performance.memory.layouts import layout_problems
from gpuplan.performance.memory.storage import storage_of
from gpuplan.performance.serving.engines import engine_settings
from gpuplan.studies.sizing.adapters import with_enough_slots
from gpuplan.studies.sizing.evaluator import CandidateEvaluator
from gpuplan.studies.sizing.task import SizingTask
from gpuplan.studies.support import support_problems
from gpuplan.units import GB

COMPARED = ("fp8", "nvfp4", "mxfp4", "int4")  # shown beside the published format
FULL_FRAC = 0.4  # of what the engine may use, by weights: above, experts over servers are tried
SMALL_MODEL_FRAC = 0.5  # of an accelerator's memory: below, slices of it are tried


def candidates_of(task: SizingTask) -> tuple[Pruned, tuple[Assumption, ...]]:
    """All proposals, kept or rejected, with what was assumed."""
    evaluator = task.evaluator
    spec, assumed = _spec(task)
    found = propose(spec, evaluator.accelerators.values(), partial(_settings_for, task.engine))
    networks = task.context.networks
    cards = evaluator.accelerators
    found = (*over_servers(found, networks, cards), *_on_slices(spec, task))
    found = tuple(each for each in found if task.is_requested(each) or _is_compared(task, each))
    found = tuple(_served(task, each) for each in found)
    checks = _checks(task)
    pruned = cut.prune(found, checks)
    joined = [each for each in pruned.accepted if each.accelerator in networks]
    wider = with_wider_experts(_filled(joined, evaluator))
    stages = dict.fromkeys((*_stages(pruned, evaluator), *wider))
    wide = over_servers(tuple(stages), networks, cards)
    staged = cut.prune(tuple(_served(task, each) for each in wide), checks)
    both = Pruned(
        accepted=(*pruned.accepted, *staged.accepted), rejected=(*pruned.rejected, *staged.rejected)
    )
    return both, (*task.policy_assumptions, *assumed)


def _settings_for(engine: EngineChoice, card: Accelerator) -> EngineSettings:
    return engine_settings(engine.name, version_pair(engine.name, engine.version), card)


def _served(task: SizingTask, candidate: Candidate) -> Candidate:
    """With the LoRA adapters that requests ask for, where layout and format can be at all."""
    evaluator = task.evaluator
    if evaluator.load.adapters is None or _layout_problems(evaluator, candidate):
        return candidate
    return with_enough_slots(candidate, evaluator, task.limits)


def _checks(task: SizingTask) -> list[cut.Check]:
    evaluator, policy = task.evaluator, task.scenario.policy
    return [
        cut.policy_check(*task.allowed),
        cut.problem_check("precision", lambda c: _support_problems(evaluator, c)),
        cut.problem_check("layout", lambda c: _layout_problems(evaluator, c)),
        cut.domain_check(
            evaluator.accelerators,
            is_crossing_allowed=policy.layouts.is_tensor_across_islands_allowed,
        ),
        lambda candidate: _context_check(evaluator, candidate),
        cut.memory_check(evaluator.longest_memory, lambda c: _smallest_fit(evaluator, c)),
        cut.placement_check(task.context.price),
        cut.idle_check(task.limits, evaluator.idle_times),
        lambda candidate: _chunk_check(task, candidate),
    ]


def _layout_problems(evaluator: CandidateEvaluator, candidate: Candidate) -> Sequence[Problem]:
    storage = evaluator.storage(candidate.precision, candidate.cache_precision)
    is_sglang = candidate.engine is not None and candidate.engine.name == "sglang"
    if is_sglang and candidate.layout.dp > 1:
        what = f"dp {candidate.layout.dp} with SGLang's scheduler is not simulated"
        return [Problem("layout", what, "use tensor parallelism, or vLLM")]
    return layout_problems(evaluator.model, storage, candidate.layout)


def _support_problems(evaluator: CandidateEvaluator, candidate: Candidate) -> Sequence[Problem]:
    storage = evaluator.storage(candidate.precision, candidate.cache_precision)
    card = evaluator.accelerators[candidate.accelerator]
    return support_problems(card, storage, candidate.engine.name if candidate.engine else "")


def _context_check(evaluator: CandidateEvaluator, candidate: Candidate) -> Rejection | None:
    most = evaluator.model.max_context_tokens
    if most is None or evaluator.longest_tokens <= most:
        return None
    reason = f"requests of {evaluator.longest_tokens:,} tokens, the model reads {most:,}"
    fix = f"keep requests within {most:,} tokens, or name a checkpoint with a longer context"
    return cut.rejection(candidate, "context", reason, fix)


def _chunk_check(task: SizingTask, candidate: Candidate) -> Rejection | None:
    """Smaller prefill chunks are worth a try only where a gap with such a chunk meets its SLO."""
    gaps = [limit for limit in task.limits if limit.metric == "itl"]
    card = task.evaluator.accelerator(candidate)
    usual = _settings_for(task.engine, card).max_batch_tokens
    chunk = candidate.settings.max_batch_tokens if candidate.settings else usual
    if not gaps or chunk >= usual:
        return None
    limit = min(gaps, key=lambda each: each.limit_s)
    chunk_s = task.evaluator.chunk_s(candidate)
    if chunk_s <= limit.limit_s:
        return None
    reason = (
        f"a chunk of {chunk} tokens takes {chunk_s * 1e3:.0f} ms, single gaps must be within "
        f"{limit.limit_s * 1e3:.0f} ms: smaller chunks only make more such gaps"
    )
    fix = f"set itl {limit.statistic} to {chunk_s * 1.05e3:.0f} ms or more"
    return cut.rejection(candidate, "tpot", reason, fix)


def _smallest_fit(evaluator: CandidateEvaluator, candidate: Candidate) -> str:
    """The least tensor parallelism that would fit, or what is missing."""
    if candidate.share is not None:
        return "a larger slice of the accelerator, or all of it"
    for tp in (2 * candidate.layout.tp, 4 * candidate.layout.tp, 8 * candidate.layout.tp):
        wider = replace(candidate, layout=replace(candidate.layout, tp=tp), share=None)
        if tp > 64 or _layout_problems(evaluator, wider):
            continue
        memory = evaluator.longest_memory(wider)
        if memory.cache_bytes >= memory.sequence_bytes:
            return f"tp {tp} would fit, {wider.n_accelerators} accelerators a replica"
    memory = evaluator.longest_memory(candidate)
    short = (memory.sequence_bytes - memory.cache_bytes) / GB
    return f"{short:.1f} GB more on each accelerator, or narrower weights"


def _stages(pruned: Pruned, evaluator: CandidateEvaluator) -> tuple[Candidate, ...]:
    """Stages, or experts over servers, where nothing has room without: by fast links, by servers.

    Where a server's bus is all that joins its accelerators, stages send less over it than tensor
    parallelism does: which of both is better, the step times tell.
    """

    def is_near(each: Candidate) -> bool:
        return each.layout.n_joined <= n_in_domain(evaluator.accelerators[each.accelerator])

    near = [each for each in pruned.accepted if is_near(each)]
    timed = [r.candidate for r in pruned.rejected if r.constraint in ("ttft", "tpot", "e2e")]
    short = [
        r.candidate for r in pruned.rejected if r.constraint == "memory" and not r.candidate.share
    ]
    inside = _short_everywhere(
        [each for each in short if is_near(each)],
        [*near, *(each for each in timed if is_near(each))],
    )
    anywhere = _short_everywhere(short, [*pruned.accepted, *timed])
    found = (*with_stages(inside), *with_stages(anywhere), *with_wider_experts(anywhere))
    return tuple(dict.fromkeys(found))


def _filled(accepted: Sequence[Candidate], evaluator: CandidateEvaluator) -> list[Candidate]:
    """Experts over a whole server that take much of its memory: more servers leave more for KV."""

    def is_full(each: Candidate) -> bool:
        is_whole = each.layout.dp >= n_in_server(evaluator.accelerators[each.accelerator])
        if not is_whole or each.is_quantized_below:
            return False
        memory = evaluator.longest_memory(each)
        return memory.weights_bytes >= FULL_FRAC * memory.budget_bytes

    return [each for each in accepted if is_full(each)]


def _short_everywhere(short: Sequence[Candidate], enough: Sequence[Candidate]) -> list[Candidate]:
    """Short of memory on accelerators where none has room: stages may help."""
    kinds = {(each.accelerator, each.precision) for each in enough}
    return [each for each in short if (each.accelerator, each.precision) not in kinds]


def _on_slices(spec: ProposalSpec, task: SizingTask) -> tuple[Candidate, ...]:
    """MIG slices or time slices of accelerators for a model that takes less than half of one."""
    found: list[Candidate] = []
    settings_for, evaluator = partial(_settings_for, spec.engine), task.evaluator
    for card in evaluator.accelerators.values():
        whole = propose(replace(spec, is_moe=False, limits_gaps=False), [card], settings_for)[0]
        memory = evaluator.longest_memory(whole)
        needed = memory.visible_bytes - memory.cache_bytes + memory.sequence_bytes
        needed -= memory.visible_bytes - memory.budget_bytes
        if needed > SMALL_MODEL_FRAC * card.memory.visible_bytes:
            continue
        shares = shares_of(card, evaluator.catalog.mig_profiles_of(card.id), needed)
        found += on_shares(spec, card, shares, settings_for)
    return tuple(found)


def _is_compared(task: SizingTask, candidate: Candidate) -> bool:
    """Whether a precision that nobody asked for is shown: the card computes in it, and is sold.

    Where it has units for 4-bit floats, these take the place of 4-bit integers.
    """
    form = format_named(candidate.precision)
    card = task.evaluator.accelerators[candidate.accelerator]
    if form is None or form.compute not in card.peak_flop_per_s or candidate.share is not None:
        return False
    is_nvidia = card.instruction_set.startswith("sm_")
    others = {"int4"} if "fp4" in card.peak_flop_per_s else set()
    if form.name in others | {"mxfp4" if is_nvidia else "nvfp4"}:
        return False
    return task.context.price(candidate, 1) is not None and task.is_mainstream(candidate)


def _compared_precisions(task: SizingTask, published: NumberFormat) -> list[NumberFormat]:
    """The published format and the usual narrower ones; none where the policy names some.

    Nor where the choice alone is asked for: it is never made among them.
    """
    if task.scenario.policy.precisions or task.context.options.is_choice_alone:
        return []
    narrow = [form for name in COMPARED if (form := format_named(name)) is not None]
    return [published, *(f for f in narrow if f.element_bytes < published.element_bytes)]


def _spec(task: SizingTask) -> tuple[ProposalSpec, list[Assumption]]:
    workload, model = task.workload, task.model
    published = model.checkpoint.quantized or model.checkpoint.base
    requested = [
        form for name in task.requested_precisions if (form := format_named(name)) is not None
    ]
    others = _compared_precisions(task, published)
    precisions = list({form.name: form for form in (*(requested or [published]), *others)}.values())
    stored, assumed = storage_of(model, precisions[0], format_named(workload.cache_precision or ""))
    assumptions = [a for a in assumed if a.what != "precision"]
    assumptions += _format_assumptions(
        published,
        task.engine,
        is_given=bool(workload.precisions or task.scenario.policy.precisions),
    )
    spec = ProposalSpec(
        workload=workload.name,
        precisions=tuple(form.name for form in precisions),
        cache_precision=stored.cache.name,
        narrow=tuple(f.name for f in precisions if f.element_bytes < published.element_bytes),
        is_moe=model.is_moe,
        engine=task.engine,
        layout=workload.layout,
        limits_gaps=any(limit.metric == "itl" for limit in task.limits),
    )
    return spec, assumptions


def _format_assumptions(
    published: NumberFormat, engine_: EngineChoice, *, is_given: bool
) -> list[Assumption]:
    value = f"{engine_.name} {engine_.version} with its defaults"
    why = "a current version; step times as of the newest that were measured"
    engine = assume("engine", value, why, "site.software.framework: sglang")
    if is_given:
        return [engine]
    why = "as the checkpoint is published; narrower is never chosen unasked"
    change = "workloads[].precision"
    return [engine, assume("precision", published.name, why, change)]
