"""A whole training run: its step, what stops it, and how long it takes."""

from gpuplan.domain.requests.requests import TrainingRun
from gpuplan.domain.training.run import RunForecast
from gpuplan.domain.training.time import CheckpointWrites, FailureRate, Goodput
from gpuplan.performance.training.goodput import goodput
from gpuplan.performance.training.run import checkpoint_bytes
from gpuplan.studies.measured.training import named_model
from gpuplan.studies.training.predict import predict_training


def predict_run(run: TrainingRun) -> RunForecast:
    """The step with its range, the useful share of the clock, and the length of the run."""
    columns = dict(run.columns)
    model = named_model(columns["model"])
    return RunForecast(
        model=model,
        columns=run.columns,
        forecast=predict_training(columns),
        goodput=_goodput(run, model.n_params),
        n_tokens=run.n_tokens,
    )


def _goodput(run: TrainingRun, n_params: float) -> Goodput | None:
    if run.checkpoint_bytes_per_s is None:
        return None
    writes = CheckpointWrites(
        size_bytes=checkpoint_bytes(n_params), write_bytes_per_s=run.checkpoint_bytes_per_s
    )
    return goodput(FailureRate(mtbf_s=run.mtbf_s, restart_s=run.restart_s), writes)
