"""One deployment under its load, evaluated: memory, KV blocks, engine limits, step times.

In: a setup (model, accelerator, layout, precision, engine, settings, load). Out: what `fit`,
`predict`, `simulate`, `scale` and `plan` know of it; none of them computes any of this again.
"""

from dataclasses import replace
from functools import cached_property, lru_cache
from math import ceil

import numpy as np

from gpuplan.calibration.inference.labels import inference_labels, nearest_era
from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.domain.calibration.constants import InferenceCalibration, Labels
from gpuplan.domain.columns import Floats
from gpuplan.domain.inference.performance import ServingSetup
from gpuplan.domain.inference.serving import InferenceMemory, ServingLayout
from gpuplan.domain.simulation.engine import (
    DecodeEngines,
    EngineLimits,
    Fleet,
    HybridPool,
    LockStep,
    StepTable,
    StepTimes,
)
from gpuplan.domain.simulation.simulation import EngineRequest
from gpuplan.performance.kernels.regimes import (
    RegimeConstants,
    ServingCase,
    decode_token_s,
    lost_before_s,
    prefill_s,
    steady_token_s,
)
from gpuplan.performance.kernels.step import StepConstants, StepWork
from gpuplan.performance.memory.cache import hybrid_pool, n_cache_blocks
from gpuplan.performance.memory.inference import setup_memory
from gpuplan.performance.serving.regimes import case_in
from gpuplan.performance.serving.sglang import LEAST_SEQUENCES, most_sequences
from gpuplan.studies.inference.admission import (
    SGLANG,
    VLLM,
    admission_of,
    caches_prefixes,
    vllm_rules,
)
from gpuplan.studies.inference.disaggregation import kv_transfer
from gpuplan.studies.inference.prefix import with_cached_prefix, with_resident_prefix
from gpuplan.studies.inference.step_table import lockstep_of, own_step_table, step_table
from gpuplan.studies.inference.work import setup_work

ROUTER = "least_outstanding"
N_BATCHES = 48  # batch sizes between one and the most, at which the pace is computed


class EvaluatedDeployment:
    """One replica of a setup, each part computed when it is first asked for."""

    def __init__(
        self,
        setup: ServingSetup,
        constants: tuple[StepConstants, RegimeConstants],
        *,
        context_tokens: int | None = None,
        scheduler: EngineRequest | None = None,
        shared_tokens: float = 0.0,
        spread: ServingLayout | None = None,
    ) -> None:
        self.setup = setup  # of one engine
        self.spread = spread or setup.layout  # of a whole replica
        self.step, self.regime = constants
        mean_tokens = int(setup.load.input_tokens + setup.load.output_tokens)
        self.context_tokens = max(1, context_tokens or mean_tokens)
        self.scheduler = scheduler or EngineRequest()
        self.shared_tokens = shared_tokens  # of a mean prompt, that the engine itself finds again

    @cached_property
    def memory(self) -> InferenceMemory:
        """Memory of the fullest accelerator with one sequence of mean length."""
        return setup_memory(self.setup, self.context_tokens)

    @cached_property
    def fits(self) -> bool:
        """The weights leave room for one sequence."""
        return self.memory.cache_bytes >= self.memory.sequence_bytes

    @cached_property
    def work(self) -> StepWork:
        """Work of one iteration, before any efficiency."""
        return setup_work(self.setup)

    @cached_property
    def case(self) -> ServingCase:
        """One replica's share of the load."""
        return case_in(self.memory, self.setup)

    @property
    def cached_tokens(self) -> float:
        """Of a mean prompt, found in the prefix cache and private to its conversation."""
        return float(self.case.cached_tokens)

    @cached_property
    def n_blocks(self) -> int:
        """KV blocks that one engine can hand out."""
        if self.scheduler.n_blocks is not None:
            return self.scheduler.n_blocks // self._n_disaggregated
        # What does not fit is answered as if a little room were left: the caller says so.
        left_bytes = self.memory.cache_bytes
        held_bytes = left_bytes if left_bytes > 0 else float(self.case.cache_bytes)
        n = n_cache_blocks(
            held_bytes,
            sequence_bytes=self.memory.sequence_bytes,
            context_tokens=self.context_tokens,
            block_tokens=self.setup.settings.block_tokens,
        )
        return n // self._n_disaggregated

    @cached_property
    def limits(self) -> EngineLimits:
        """What the scheduler of one engine may hand out, and what a request loses outside it."""
        setup, requested = self.setup, self.scheduler
        n_sequences = max(1, self._max_sequences // self._n_disaggregated)
        limits = EngineLimits(
            max_batch_tokens=self._most_tokens(n_sequences),
            max_sequences=n_sequences,
            n_blocks=self.n_blocks,
            block_tokens=setup.settings.block_tokens,
            admission=admission_of(setup, requested, self.n_blocks, self._hybrid),
            long_prefill_tokens=requested.long_prefill_tokens,
            max_context_tokens=setup.model.max_context_tokens,
            caches_prefixes=caches_prefixes(setup, requested),
            scheduling=requested.scheduling,
            drafts=setup.drafts,
            draws_acceptance=requested.draws_acceptance,
            start_s=self.start_s,
        )
        if not self.cached_tokens:
            return limits
        other_tokens = self._own_tokens
        return with_resident_prefix(
            limits, cached_tokens=self.cached_tokens, other_tokens=other_tokens
        )

    @cached_property
    def _hybrid(self) -> HybridPool | None:
        """The pool of a model with layers of several kinds, where it can be simulated."""
        setup, requested = self.setup, self.scheduler
        is_one = setup.n_engines == setup.layout.pp == 1 and not self.spread.is_disaggregated
        given = (requested.batching, requested.n_blocks, requested.admission.groups, setup.drafts)
        is_usual = all(one is None for one in given)
        if setup.engine.name != VLLM or not is_one or not is_usual or self.cached_tokens:
            return None
        return hybrid_pool(setup, max(0.0, self.memory.cache_bytes), vllm_rules(setup))

    @property
    def _n_disaggregated(self) -> int:
        """Stages that have a scheduler, and a share of sequences and cache, of their own."""
        return self.setup.layout.pp // self.setup.n_stages

    @property
    def _own_steps(self) -> StepTimes | None:
        """Step times that the user stated or measured."""
        steps = None if self.scheduler.replica is None else self.scheduler.replica.steps
        assert not isinstance(steps, str), "files are read by those who were given them"
        return steps

    @property
    def _is_sglang(self) -> bool:
        return self.setup.engine.name == SGLANG and self.scheduler.batching is None

    @property
    def _max_sequences(self) -> int:
        """By the settings; SGLang lets more run at once where the cache holds many contexts."""
        n, context = self.setup.settings.max_sequences, self.setup.model.max_context_tokens
        if not self._is_sglang or n != LEAST_SEQUENCES:
            return n
        return most_sequences(self.n_blocks * self.setup.settings.block_tokens, context)

    def _most_tokens(self, n_sequences: int) -> int:
        """Tokens of one iteration, at most: SGLang's decodes are not bound by a chunk."""
        n = self.setup.settings.max_batch_tokens
        return max(n, n_sequences) if self._is_sglang else n

    @property
    def _own_tokens(self) -> float:
        """Of a mean request, what is not found in the prefix cache."""
        load = self.setup.load
        return load.input_tokens - self.cached_tokens + load.output_tokens

    @cached_property
    def table(self) -> StepTable:
        """Times of all iterations that the limits allow, with equal loads on all engines."""
        if self._own_steps is not None:
            return own_step_table(self._own_steps, **self._most)
        return self._with_prefix(step_table(self.work, self.step, **self._most))

    @cached_property
    def lockstep(self) -> LockStep | None:
        """How data-parallel ranks step together; None where there are none."""
        if self._own_steps is not None:
            return None
        found = lockstep_of(self.work, self.step, layout=self.setup.layout, **self._most)
        return found and replace(found, own=self._with_prefix(found.own))

    @property
    def _most(self) -> dict[str, int]:
        """Tokens and sampled rows of one iteration, at most."""
        n_rows = self.limits.max_sequences * ceil(self.case.checked_tokens)
        return {"max_tokens": self.limits.max_batch_tokens, "max_sequences": n_rows}

    def _with_prefix(self, table: StepTable) -> StepTable:
        return with_cached_prefix(table, self.cached_tokens) if self.cached_tokens else table

    def fleet(self, n_replicas: int = 1, *, router: str = ROUTER, seed: int = 0) -> Fleet:
        """So many replicas behind one router.

        Stages carry as many batches as there are stages; data-parallel ranks have their own, and
        step together.
        """
        n_each = self.spread.n_prefill or self.setup.n_engines
        return Fleet(
            limits=self.limits,
            table=self.table,
            n_engines=n_replicas * n_each,
            lockstep=None if self.scheduler.batching else self.lockstep,
            router=router,
            seed=seed,
            batching=self.scheduler.batching,
            decode=self._decode(n_replicas) if self.spread.is_disaggregated else None,
        )

    @property
    def n_engines(self) -> int:
        """Schedulers of one replica."""
        return self.setup.n_engines * self.spread.n_roles

    def _decode(self, n_replicas: int) -> DecodeEngines:
        """The engines that decode. A request that joins them brings one prompt token, which rides
        in the captured graphs of decodes: no floor of an iteration with prompts.
        """
        transfer = kv_transfer(self.setup, self.spread)
        table = replace(self.table, prompt_floor_s=0.0)
        n = n_replicas * self.spread.n_decode
        return DecodeEngines(n_engines=n, table=table, transfer=transfer)

    @cached_property
    def transfer_s(self) -> float:
        """What a mean request loses between its prefill and its decode, nobody else sending."""
        if not self.spread.is_disaggregated:
            return 0.0
        transfer = kv_transfer(self.setup, self.spread)
        fresh = max(1.0, self.case.input_tokens - self.cached_tokens)
        sent_s = float(fresh) * transfer.cache_bytes_per_token / transfer.link_bytes_per_s
        # The decode engine computes the last token of the prompt once more.
        return transfer.latency_s + sent_s + self.alone_s

    @cached_property
    def prefill_per_s(self) -> float:
        """Prompts per second of one engine that reads nothing else, in full iterations."""
        fresh = max(1.0, float(self.case.input_tokens - self.cached_tokens))
        n_prompts = max(1.0, self.limits.max_batch_tokens / fresh)
        return n_prompts / float(prefill_s(self.work, self.step, self.case, n_prompts))

    def decode_per_s(self, token_limit_s: float | None) -> float:
        """Responses per second of one engine that only decodes, within a time per token.

        Of a replica that is not disaggregated: of all of it, prompts being read as they come.
        """
        rates, token_s = self._paces
        if token_limit_s is not None:
            rates = rates[token_s <= token_limit_s]
        return float(rates.max(initial=0.0)) / max(1, self.spread.n_decode)

    @cached_property
    def most_running(self) -> float:
        """Sequences that one replica runs at most: slots or KV cache."""
        limits = self.limits
        resident = limits.n_blocks * limits.block_tokens / max(1.0, self._own_tokens)
        n_decoding = self.spread.n_decode or self.setup.n_engines
        return float(max(1.0, min(limits.max_sequences, resident))) * n_decoding

    def token_s(self, n_running: Floats) -> Floats:
        """Mean time per token with so many running and prompts read as they are answered."""
        if self.spread.is_disaggregated:
            each = n_running / self.spread.n_decode
            return np.asarray(decode_token_s(self.work, self.step, self.case, each))
        return np.asarray(steady_token_s(self.work, self.step, self.case, n_running))

    @cached_property
    def _paces(self) -> tuple[Floats, Floats]:
        """Requests per second of one replica and its time per token, from idle to full."""
        running = np.geomspace(1.0, self.most_running, N_BATCHES)
        token_s = self.token_s(running)
        return running / token_s / max(1.0, self.setup.load.output_tokens), token_s

    def capacity_per_s(self, token_limit_s: float | None = None) -> float:
        """Requests per second of one replica at its fullest, or within a mean time per token."""
        found = self.decode_per_s(token_limit_s) * max(1, self.spread.n_decode)
        most = self.spread.n_prefill * self.prefill_per_s if self.spread.is_disaggregated else found
        return min(found, most)

    @cached_property
    def start_s(self) -> float:
        """What a request loses outside its own iterations, at the pace of one that is alone.

        Network, tokenizer, a part of its prompt, and iterations that were planned before it came;
        an engine that plans ahead loses one of these inside itself, where it is simulated.
        """
        if self._own_steps is not None:
            return 0.0  # the engine alone, as its steps were measured
        is_ahead = admission_of(self.setup, self.scheduler).is_ahead
        start_steps = max(0.0, self.regime.start_steps - is_ahead)
        prompt_s = self.prompt_s
        if self.shared_tokens:
            case = self.case._replace(cached_tokens=self.cached_tokens + self.shared_tokens)
            prompt_s = float(prefill_s(self.work, self.step, case))
        regime = self.regime._replace(start_steps=start_steps)
        return float(lost_before_s(regime, prompt_s, self.alone_s))

    @cached_property
    def prompt_s(self) -> float:
        """An iteration that reads one mean prompt and nothing else."""
        return float(prefill_s(self.work, self.step, self.case))

    @cached_property
    def alone_s(self) -> float:
        """Time per token of a sequence that is alone."""
        return float(decode_token_s(self.work, self.step, self.case, 1.0))

    def n_running(self, requests_per_s: float) -> float:
        """Requests in flight at this rate, up to full: Little's law, none of them waiting."""
        rates, token_s = self._paces
        writing_s = max(1.0, self.setup.load.output_tokens) * token_s
        at = float(np.interp(requests_per_s, np.maximum.accumulate(rates), writing_s))
        return requests_per_s * (self.start_s + self.prompt_s + self.transfer_s + at)


def evaluated(
    setup: ServingSetup,
    *,
    calibration: InferenceCalibration | None = None,
    context_tokens: int | None = None,
    scheduler: EngineRequest | None = None,
    shared_tokens: float = 0.0,
    spread: ServingLayout | None = None,
) -> EvaluatedDeployment:
    """The setup with the constants of its labels; the package's calibration unless another."""
    return EvaluatedDeployment(
        setup,
        constants_for(calibration or inference_calibration(), inference_labels(setup)),
        context_tokens=context_tokens,
        scheduler=scheduler,
        shared_tokens=shared_tokens,
        spread=spread,
    )


def constants_for(
    calibration: InferenceCalibration, labels: Labels
) -> tuple[StepConstants, RegimeConstants]:
    """The constants of these labels; an era never seen takes its nearest."""
    return _constants(calibration, tuple(labels.items()))


@lru_cache(maxsize=4096)
def _constants(
    calibration: InferenceCalibration, items: tuple[tuple[str, str], ...]
) -> tuple[StepConstants, RegimeConstants]:
    labels = dict(items)
    era = nearest_era(labels["era"], calibration.known["era"])
    values = calibration.constants.values({**labels, "era": era})
    return (
        StepConstants(*(float(values[name]) for name in StepConstants._fields)),
        RegimeConstants(*(float(values[name]) for name in RegimeConstants._fields)),
    )
