"""Candidates of one served language model, evaluated: memory, work of an iteration, idle times."""

from functools import cache

from gpuplan.calibration.inference.labels import inference_labels
from gpuplan.calibration.inference.store import inference_calibration
from gpuplan.candidates.propose import shared_device
from gpuplan.candidates.prune import IdleTimes
from gpuplan.domain.calibration.constants import InferenceCalibration
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.performance import ServingLoad, ServingSetup
from gpuplan.domain.inference.serving import InferenceMemory, StorageFormats
from gpuplan.domain.model.network import Model
from gpuplan.domain.model.precision import format_named
from gpuplan.domain.plan.candidate import Candidate
from gpuplan.domain.simulation.simulation import EngineRequest, ReplicaRequest
from gpuplan.performance.kernels.regimes import prefill_s
from gpuplan.performance.memory.inference import setup_memory
from gpuplan.performance.memory.storage import storage_of
from gpuplan.studies.inference.deployment import EvaluatedDeployment, evaluated
from gpuplan.studies.inference.predict import Ranged


class CandidateEvaluator:
    """Candidates of one workload, each set up once and on demand."""

    def __init__(
        self,
        model: Model,
        load: ServingLoad,
        catalog: Catalog,
        *,
        context_tokens: tuple[int, int],  # of a mean request and of the longest
        max_tokens: int | None = None,
        calibration: InferenceCalibration | None = None,
    ) -> None:
        self.model, self.load, self.catalog = model, load, catalog
        self.context_tokens, self.longest_tokens = context_tokens
        # What every request asks for, which some engines reserve.
        self.scheduler = EngineRequest(replica=ReplicaRequest(max_tokens=max_tokens))
        self.calibration = calibration or inference_calibration()
        self.accelerators = {str(name): card for name, card in catalog.accelerators.items()}
        # Candidates come back from every check, search and replay: each is evaluated once.
        self.storage = cache(self._storage)
        self.memory = cache(self._memory)
        self.prepared = cache(self._prepared)
        self.ranged = cache(self._ranged)
        self.idle_times = cache(self._idle_times)

    def _storage(self, precision: str, cache_precision: str) -> StorageFormats:
        """Formats of weights and KV cache in memory."""
        published = self.model.checkpoint
        # The published mix of formats is asked for by no name at all.
        is_own = precision == (published.quantized or published.base).name
        form = None if is_own else format_named(precision)
        return storage_of(self.model, form, format_named(cache_precision))[0]

    def accelerator(self, candidate: Candidate) -> Accelerator:
        """The accelerator, or the slice of it."""
        card = self.accelerators[candidate.accelerator]
        return shared_device(card, candidate.share) if candidate.share else card

    def setup(self, candidate: Candidate) -> ServingSetup:
        """The deployment of one replica."""
        assert candidate.engine is not None
        assert candidate.settings is not None
        return ServingSetup(
            model=self.model,
            accelerator=self.accelerator(candidate),
            storage=self.storage(candidate.precision, candidate.cache_precision),
            layout=candidate.layout.engine,
            engine=candidate.engine,
            settings=candidate.settings,
            load=self.load,
        )

    def _memory(self, candidate: Candidate, n_tokens: int) -> InferenceMemory:
        """Memory of the fullest accelerator with one sequence of so many tokens."""
        return setup_memory(self.setup(candidate), n_tokens)

    def longest_memory(self, candidate: Candidate) -> InferenceMemory:
        """Memory of the fullest accelerator with one sequence of the greatest length."""
        return self.memory(candidate, self.longest_tokens)

    def _prepared(self, candidate: Candidate) -> EvaluatedDeployment:
        """One replica of the candidate, evaluated as every verb does."""
        return evaluated(
            self.setup(candidate),
            calibration=self.calibration,
            context_tokens=self.context_tokens,
            scheduler=self.scheduler,
            spread=candidate.layout,
        )

    def _idle_times(self, candidate: Candidate) -> IdleTimes:
        """Latencies of one request alone on an idle replica."""
        p = self.prepared(candidate)
        first_s, token_s = p.start_s + p.prompt_s + p.transfer_s, p.alone_s
        rest = max(0.0, self.load.output_tokens - 1.0)
        return IdleTimes(ttft_s=first_s, tpot_s=token_s, e2e_s=first_s + rest * token_s)

    def chunk_s(self, candidate: Candidate) -> float:
        """An iteration full of prompt tokens, with nothing else in it."""
        p = self.prepared(candidate)
        fresh = max(1.0, p.case.input_tokens - p.case.cached_tokens)
        return float(prefill_s(p.work, p.step, p.case, p.setup.settings.max_batch_tokens / fresh))

    def _ranged(self, candidate: Candidate) -> Ranged:
        """What attaches ranges to predictions of this candidate."""
        setup = self.setup(candidate)
        return Ranged(setup, self.calibration, inference_labels(setup))
