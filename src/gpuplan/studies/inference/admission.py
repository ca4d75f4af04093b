"""When requests join what an engine runs: what was asked for, or what its version does."""

from gpuplan.calibration.inference.eras import version_pair
from gpuplan.domain.inference.performance import ServingSetup
from gpuplan.domain.provenance import Assumption
from gpuplan.domain.simulation.engine import Admission
from gpuplan.domain.simulation.simulation import EngineRequest

# The next iteration is drawn up while one runs, by default and not across stages [vLLM-0.14].
AHEAD_SINCE = {"vllm": (0, 14)}


def admission_of(setup: ServingSetup, asked: EngineRequest) -> Admission:
    """Ahead where asked for, else where this version does so by itself."""
    if asked.is_ahead is not None:
        return Admission(is_ahead=asked.is_ahead)
    return Admission(is_ahead=asked.batching is None and _is_usual(setup))


def assumed_admission(
    setup: ServingSetup, admission: Admission, asked: EngineRequest
) -> list[Assumption]:
    """Told where nobody asked for it."""
    if asked.is_ahead is not None or not admission.is_ahead:
        return []
    what, change = "scheduling ahead", "--no-async-scheduling"
    value = "who comes while an iteration runs joins the next but one"
    why = f"{setup.engine.name} {setup.engine.version} draws up an iteration while one runs"
    return [Assumption(what=what, value=value, why=why, change=change)]


def _is_usual(setup: ServingSetup) -> bool:
    since = AHEAD_SINCE.get(setup.engine.name)
    version = version_pair(setup.engine.name, setup.engine.version)
    return since is not None and version is not None and version >= since and setup.layout.pp == 1
