"""Recommenders: measured rates of MLPerf's two, carried over to other boards and other tables.

A sample is one item ranked for one user. Its time is that of its dense layers at the peak and of
its rows at the bandwidth, over what measured networks reached of the two: the second of MLPerf
reads many rows and reaches less than the first does, so others lie between, and are unsure.
"""

from math import sqrt

from gpuplan.calibration.networks.stored import benchmark_rate
from gpuplan.catalog.models import find_model
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.model.network import Model
from gpuplan.domain.model.other import Device, NetworkForecast, NetworkWork
from gpuplan.domain.provenance import Assumption, Estimate, assume
from gpuplan.domain.requests.requests import NetworkRequest
from gpuplan.performance.other_networks import speed_ratio
from gpuplan.studies.networks.speech import benchmarked_board, board_figures

# MLPerf counts queries of 100 to 700 items [MLPerf Inference rules, aggregated traces].
ITEMS_PER_QUERY = 270.0
RUNS = {"mlcommons/dlrm-v1": "dlrm-99", "mlcommons/dlrm-v2": "dlrm-v2-99"}
ROW_BYTES = 2.0  # of an element: tables are usually stored in 16 bits
LEAST_CALL_S = 0.0002  # some hundred kernels, launched as one graph


def recommender_forecast(
    model: Model, card: Accelerator, request: NetworkRequest, notes: list[Assumption]
) -> NetworkForecast:
    """Time of a batch of items on one accelerator, with its range."""
    work = recommender_work(model, batch=request.batch)
    found = [_carried(work, of, card) for of in RUNS if model.name == of or model.name not in RUNS]
    value = sqrt(found[0].value * found[-1].value)
    batch_s = Estimate(
        value=max(LEAST_CALL_S, value),
        low=max(LEAST_CALL_S, min(each.low for each in found)),
        high=max(LEAST_CALL_S, *(each.high for each in found)),
        tier=found[0].tier if len(found) == 1 else "estimated",
        sources=found[0].sources,
    )
    notes.append(assume("software", "as MLPerf's submitters tuned it", "what was measured", ""))
    rows = f"{model.embedding.n_rows_per_sample} rows of {model.main.hidden_size}"
    notes.append(assume("sample", f"one item: {rows}", "as its tables are read", ""))
    return NetworkForecast(
        name=model.name,
        kind="recommender",
        accelerator=card,
        batch=request.batch,
        work=work,
        batch_s=batch_s,
        assumptions=tuple(notes),
    )


def _carried(work: NetworkWork, of: str, card: Accelerator) -> Estimate:
    """Time of this work at what one measured network reaches on the board."""
    board, one = benchmarked_board(card), recommender_work(find_model(of), batch=1)
    rate = benchmark_rate(RUNS[of], board, known=board_figures(), speed_ratio=speed_ratio)
    items = _bound_s(work, board) / _bound_s(one, board) / ITEMS_PER_QUERY
    return Estimate(
        value=items / rate.value,
        low=items / rate.high,
        high=items / rate.low,
        tier=rate.tier,
        sources=rate.sources,
    )


def recommender_work(model: Model, *, batch: int) -> NetworkWork:
    """Dense layers multiply, tables are read by rows."""
    n_matrix_params = sum(group.n_active_matrix_params for group in model.main.groups)
    row_bytes = ROW_BYTES * model.main.hidden_size
    return NetworkWork(
        flop=2.0 * n_matrix_params * batch,
        activation_bytes=row_bytes * model.embedding.n_rows_per_sample * batch,
        weight_bytes=ROW_BYTES * n_matrix_params,
        n_kernels=1.0,
    )


def _bound_s(work: NetworkWork, board: Device) -> float:
    return work.flop / board.flop_per_s + work.activation_bytes / board.bytes_per_s
