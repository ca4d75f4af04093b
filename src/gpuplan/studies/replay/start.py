"""What a request loses outside the engine's steps: work, constants and requests in; seconds out."""

from gpuplan.domain.traffic.stream import Requests
from gpuplan.performance.kernels.regimes import (
    RegimeConstants,
    ServingCase,
    decode_token_s,
    serve_start_s,
)
from gpuplan.performance.kernels.step import StepConstants, StepWork


def request_start_s(
    work: StepWork,
    k: StepConstants,
    regime: RegimeConstants,
    requests: Requests,
    *,
    is_ahead: bool = False,
) -> float:
    """As predictions have it, at the pace of a request that is alone: a lower bound under load.

    An engine that plans ahead loses one of the steps inside itself, where it is simulated.
    """
    regime = regime._replace(start_steps=max(0.0, regime.start_steps - is_ahead))
    case = ServingCase(
        n_sequences=1.0,
        requests_per_s=0.0,
        input_tokens=float(requests.input_tokens.mean()),
        output_tokens=float(requests.output_tokens.mean()),
        cache_bytes=0.0,
        n_stages=1.0,
        cached_tokens=float(requests.prefix_tokens.mean()),
    )
    return float(serve_start_s(work, k, regime, case, decode_token_s(work, k, case, 1.0)))
