"""Candidates of one served language model: proposed, set up, and pruned with reasons."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from gpuplan.calibration.inference.eras import version_pair
from gpuplan.calibration.inference.labels import cells_of, inference_labels
from gpuplan.calibration.inference.novelty import novelty, unknown
from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.candidates import prune as cut
from gpuplan.candidates.propose import (
    Ask,
    on_shares,
    propose,
    shared_device,
    shares_of,
    with_stages,
)
from gpuplan.domain.calibration.constants import InferenceCalibration
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.performance import EngineChoice, ServingLoad, ServingSetup
from gpuplan.domain.inference.serving import (
    EngineSettings,
    InferenceMemory,
    SequenceLoad,
    StorageFormats,
)
from gpuplan.domain.model.network import Model
from gpuplan.domain.model.precision import NumberFormat, format_named
from gpuplan.domain.noun import dataclass
from gpuplan.domain.plan.candidate import Candidate, Pruned, Rejection
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.scenario.demand import LatencyLimit
from gpuplan.domain.scenario.terms import Policy
from gpuplan.domain.scenario.workload import Serving, Workload
from gpuplan.errors import InputError, Problem
from gpuplan.performance.kernels.regimes import (
    RegimeConstants,
    ServingCase,
    decode_token_s,
    prefill_s,
)
from gpuplan.performance.kernels.step import StepConstants, StepWork
from gpuplan.performance.memory.inference import inference_memory
from gpuplan.performance.memory.layouts import layout_problems
from gpuplan.performance.memory.storage import storage_of
from gpuplan.performance.serving.engines import engine_settings
from gpuplan.performance.serving.regimes import case_in
from gpuplan.studies.inference.predict import Ranged, constants_for
from gpuplan.studies.inference.work import setup_work
from gpuplan.studies.naming import allowed_ids
from gpuplan.units import GB

ENGINE = EngineChoice(name="vllm", version="0.15")
SMALL_MODEL_FRAC = 0.5  # of an accelerator's memory: below, parts of it are tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """A candidate with all that predictions of it need."""

    candidate: Candidate
    setup: ServingSetup
    memory: InferenceMemory
    work: StepWork
    step: StepConstants
    regime: RegimeConstants
    case: ServingCase


class Bench:
    """Candidates of one workload, each set up once and on demand."""

    def __init__(
        self,
        model: Model,
        load: ServingLoad,
        catalog: Catalog,
        *,
        context_tokens: int,
        longest_tokens: int | None = None,
    ) -> None:
        self.model, self.load, self.catalog = model, load, catalog
        self.context_tokens = context_tokens
        self.longest_tokens = longest_tokens or context_tokens
        self.calibration: InferenceCalibration = inference_calibration()
        self.cards: Mapping[str, Accelerator] = {
            str(name): card for name, card in catalog.accelerators.items()
        }
        self._prospects: dict[Candidate, Prospect] = {}
        self._memory: dict[Candidate, InferenceMemory] = {}
        self._floors: dict[Candidate, cut.Floors] = {}
        self._works: dict[Hashable, StepWork] = {}
        self.storage = cache(self._storage)

    def _storage(self, precision: str, cache_precision: str) -> StorageFormats:
        published = self.model.checkpoint
        # The published mix of formats is asked for by no name at all.
        is_own = precision == (published.quantized or published.base).name
        form = None if is_own else format_named(precision)
        return storage_of(self.model, form, format_named(cache_precision))[0]

    def storage_for(self, candidate: Candidate) -> StorageFormats:
        """Formats in memory."""
        return self.storage(candidate.precision, candidate.cache_precision)

    def card_for(self, candidate: Candidate) -> Accelerator:
        """The accelerator, or the part of it."""
        card = self.cards[candidate.accelerator]
        return shared_device(card, candidate.share) if candidate.share else card

    def setup(self, candidate: Candidate) -> ServingSetup:
        """The deployment of one replica."""
        assert candidate.engine is not None
        assert candidate.settings is not None
        return ServingSetup(
            model=self.model,
            accelerator=self.card_for(candidate),
            storage=self.storage_for(candidate),
            layout=candidate.layout,
            engine=candidate.engine,
            settings=candidate.settings,
            load=self.load,
        )

    def memory(self, candidate: Candidate) -> InferenceMemory:
        """Of the fullest accelerator, with one sequence of mean length."""
        if candidate not in self._memory:
            self._memory[candidate] = self._memory_at(candidate, self.context_tokens)
        return self._memory[candidate]

    def longest_memory(self, candidate: Candidate) -> InferenceMemory:
        """The same with one sequence of the greatest length."""
        if self.longest_tokens == self.context_tokens:
            return self.memory(candidate)
        return self._memory_at(candidate, self.longest_tokens)

    def _memory_at(self, candidate: Candidate, n_tokens: int) -> InferenceMemory:
        setup = self.setup(candidate)
        return inference_memory(
            setup.model,
            setup.accelerator,
            storage=setup.storage,
            layout=setup.layout,
            engine=setup.settings,
            load=SequenceLoad(context_tokens=n_tokens, n_sequences=1),
        )

    def prospect(self, candidate: Candidate) -> Prospect:
        """Work of an iteration and the constants of its labels."""
        if candidate not in self._prospects:
            setup = self.setup(candidate)
            memory = self.memory(candidate)
            step, regime = constants_for(self.calibration, inference_labels(setup))
            self._prospects[candidate] = Prospect(
                candidate=candidate, setup=setup, memory=memory,
                work=self._work_of(candidate, setup), step=step, regime=regime,
                case=case_in(memory, setup),
            )  # fmt: skip
        return self._prospects[candidate]

    def _work_of(self, candidate: Candidate, setup: ServingSetup) -> StepWork:
        """Settings of the engine change how many tokens share an iteration, not its work."""
        c = candidate
        same = (c.accelerator, c.share, c.precision, c.cache_precision, c.layout, c.engine)
        if same not in self._works:
            self._works[same] = setup_work(setup)
        return self._works[same]

    def floors(self, candidate: Candidate) -> cut.Floors:
        """One request alone on an idle replica."""
        if candidate not in self._floors:
            self._floors[candidate] = self._floors_of(candidate)
        return self._floors[candidate]

    def _floors_of(self, candidate: Candidate) -> cut.Floors:
        p = self.prospect(candidate)
        first_s = float(p.regime.serve_start_s + prefill_s(p.work, p.step, p.case))
        token_s = float(decode_token_s(p.work, p.step, p.case, 1.0))
        rest = max(0.0, self.load.output_tokens - 1.0)
        return cut.Floors(ttft_s=first_s, tpot_s=token_s, e2e_s=first_s + rest * token_s)

    def chunk_s(self, candidate: Candidate) -> float:
        """An iteration full of prompt tokens, with nothing else in it."""
        p = self.prospect(candidate)
        fresh = max(1.0, p.case.input_tokens - p.case.cached_tokens)
        return float(prefill_s(p.work, p.step, p.case, p.setup.settings.max_batch_tokens / fresh))

    def ranged(self, candidate: Candidate) -> Ranged:
        """What attaches ranges to predictions of this candidate."""
        setup = self.prospect(candidate).setup
        labels = inference_labels(setup)
        missing = unknown(
            self.calibration.known, labels, model=setup.model.name, version=setup.engine.version
        )
        return Ranged(setup, self.calibration, cells=cells_of(labels), kind=novelty(missing))


def candidates_of(
    workload: Workload, bench: Bench, policy: Policy
) -> tuple[Pruned, tuple[Assumption, ...]]:
    """All proposals, kept or rejected, with what was assumed."""
    allowed, told = allowed_ids(policy, bench.catalog)
    ask, assumed = _ask(workload, bench.model, policy)
    found = propose(ask, bench.cards.values(), _settings_for)
    found = (*found, *_on_parts(ask, bench))
    checks = _checks(limits_of(workload), bench, policy, allowed=allowed)
    pruned = cut.prune(found, checks)
    staged = cut.prune(with_stages(_short_everywhere(pruned)), checks)
    both = Pruned(kept=(*pruned.kept, *staged.kept), rejected=(*pruned.rejected, *staged.rejected))
    return both, (*told, *assumed)


def limits_of(workload: Workload) -> tuple[LatencyLimit, ...]:
    """Promised latencies; work that may wait has none."""
    return workload.work.slo.limits if isinstance(workload.work, Serving) else ()


def _settings_for(card: Accelerator) -> EngineSettings:
    return engine_settings(ENGINE.name, version_pair(ENGINE.name, ENGINE.version), card)


def _checks(
    limits: Sequence[LatencyLimit],
    bench: Bench,
    policy: Policy,
    *,
    allowed: tuple[frozenset[str], frozenset[str]],
) -> list[cut.Check]:
    is_crossing = policy.is_tensor_across_islands_allowed
    return [
        cut.policy_check(*allowed),
        cut.precision_check(bench.cards),
        cut.layout_check(lambda c: _layout_problems(bench, c)),
        cut.island_check(bench.cards, is_crossing_allowed=is_crossing),
        _context_check(bench),
        cut.memory_check(bench.longest_memory, _smallest_fit(bench)),
        cut.floor_check(limits, bench.floors),
        _chunk_check(limits, bench),
    ]


def _layout_problems(bench: Bench, candidate: Candidate) -> Sequence[Problem]:
    return layout_problems(bench.model, bench.storage_for(candidate), candidate.layout)


def _context_check(bench: Bench) -> cut.Check:
    most = bench.model.max_context_tokens

    def check(candidate: Candidate) -> Rejection | None:
        if most is None or bench.longest_tokens <= most:
            return None
        reason = f"requests of {bench.longest_tokens} tokens, the model reads {most}"
        return cut.rejection(candidate, "context", reason, f"keep requests within {most} tokens")

    return check


def _chunk_check(limits: Sequence[LatencyLimit], bench: Bench) -> cut.Check:
    """Smaller chunks are worth a try only where a gap with such a chunk keeps its promise."""
    gaps = [limit for limit in limits if limit.metric == "itl"]

    def check(candidate: Candidate) -> Rejection | None:
        usual = _settings_for(bench.card_for(candidate)).max_batch_tokens
        chunk = candidate.settings.max_batch_tokens if candidate.settings else usual
        if not gaps or chunk >= usual:
            return None
        limit = min(gaps, key=lambda each: each.limit_s)
        chunk_s = bench.chunk_s(candidate)
        if chunk_s <= limit.limit_s:
            return None
        reason = (
            f"a chunk of {chunk} tokens takes {chunk_s * 1e3:.0f} ms, single gaps must be within "
            f"{limit.limit_s * 1e3:.0f} ms: smaller chunks only make more such gaps"
        )
        fix = f"promise itl {limit.statistic} of {chunk_s * 1.05e3:.0f} ms or more"
        return cut.rejection(candidate, "tpot", reason, fix)

    return check


def _smallest_fit(bench: Bench) -> Callable[[Candidate], str]:
    """The fewest ways of tensor parallelism that would fit, or what is missing."""

    def relaxation(candidate: Candidate) -> str:
        if candidate.share is not None:
            return "a larger part of the accelerator, or all of it"
        for tp in (2 * candidate.layout.tp, 4 * candidate.layout.tp, 8 * candidate.layout.tp):
            wider = replace(candidate, layout=replace(candidate.layout, tp=tp), share=None)
            if tp > 64 or _layout_problems(bench, wider):
                continue
            memory = bench.longest_memory(wider)
            if memory.cache_bytes >= memory.sequence_bytes:
                return f"tp {tp} would fit, {wider.n_accelerators} accelerators a replica"
        memory = bench.longest_memory(candidate)
        short = (memory.sequence_bytes - memory.cache_bytes) / GB
        return f"{short:.1f} GB more on each accelerator, or narrower weights"

    return relaxation


def _short_everywhere(pruned: Pruned) -> list[Candidate]:
    """Rejected for memory on accelerators where nothing was kept: stages may help."""
    held = {(c.accelerator, c.precision) for c in pruned.kept}
    held |= {
        (r.candidate.accelerator, r.candidate.precision)
        for r in pruned.rejected
        if r.constraint in ("ttft", "tpot", "e2e")
    }
    return [
        r.candidate
        for r in pruned.rejected
        if r.constraint == "memory"
        and r.candidate.share is None
        and (r.candidate.accelerator, r.candidate.precision) not in held
    ]


def _on_parts(ask: Ask, bench: Bench) -> tuple[Candidate, ...]:
    """Parts of accelerators for a model that takes less than half of one."""
    found: list[Candidate] = []
    for card in bench.cards.values():
        whole = propose(replace(ask, is_moe=False, limits_gaps=False), [card], _settings_for)[0]
        memory = bench.longest_memory(whole)
        needed = memory.visible_bytes - memory.cache_bytes + memory.sequence_bytes
        needed -= memory.visible_bytes - memory.budget_bytes
        if needed > SMALL_MODEL_FRAC * card.memory.visible_bytes:
            continue
        shares = shares_of(card, bench.catalog.mig_profiles_of(card.id), needed)
        found += on_shares(ask, card, shares, _settings_for)
    return tuple(found)


def _ask(workload: Workload, model: Model, policy: Policy) -> tuple[Ask, list[Assumption]]:
    published = model.checkpoint.quantized or model.checkpoint.base
    named = [format_named(name) for name in (workload.precisions or policy.precisions)]
    known = [form for form in named if form is not None]
    if len(known) < len(named):
        problem = Problem(f"{workload.name}.precision", "names an unknown format", "see the docs")
        raise InputError("plan", [problem])
    if workload.precisions and policy.precisions:
        both = {form.name for p in policy.precisions if (form := format_named(p))}
        known = [form for form in known if form.name in both]
        if not known:
            what = f"{', '.join(workload.precisions)} against {', '.join(policy.precisions)}"
            problem = Problem(f"{workload.name}.precision", what, "allow one format in both")
            raise InputError("plan", [problem])
    precisions = known or [published]
    stored, assumed = storage_of(model, precisions[0], format_named(workload.cache_precision or ""))
    told = [a for a in assumed if a.what != "precision"]
    told += _told_formats(precisions, published, is_given=bool(known))
    ask = Ask(
        workload=workload.name,
        precisions=tuple(form.name for form in precisions),
        cache_precision=stored.cache.name,
        narrow=tuple(f.name for f in precisions if f.stored_bytes < published.stored_bytes),
        is_moe=model.is_moe,
        engine=ENGINE,
        layout=workload.layout,
        limits_gaps=any(limit.metric == "itl" for limit in limits_of(workload)),
    )
    return ask, told


def _told_formats(
    precisions: Sequence[NumberFormat], published: NumberFormat, *, is_given: bool
) -> list[Assumption]:
    engine = Assumption(
        what="engine", value=f"{ENGINE.name} {ENGINE.version} with its defaults",
        why="a recent version that measurements cover", change="",
    )  # fmt: skip
    if not is_given:
        why = "as the checkpoint is published; narrower is never chosen unasked"
        return [engine, Assumption(what="precision", value=published.name, why=why,
                                   change="workloads[].precision")]  # fmt: skip
    return [engine]
