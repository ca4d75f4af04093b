"""`gpuplan eta`: when a job that is not submitted yet would start."""

from pathlib import Path
from typing import Annotated, NamedTuple

from gpuplan.cli.options import ANALYSIS, LOAD, Json, Output, Seed, arg, opt
from gpuplan.cli.output import Form, busy, chosen, emit


class EtaOptions(NamedTuple):
    """Options of `eta`, in the order of its help."""

    cluster: Annotated[Path, arg("Cluster file: nodes, teams, policy.")]
    jobs: Annotated[Path, opt(LOAD, "Job trace up to now, with what runs and waits.", "--jobs")]
    gpus: Annotated[int, opt(LOAD, "GPUs that the job asks for.", min=1)] = 1
    hours: Annotated[float, opt(LOAD, "Duration of the job in hours.", min=0.001)] = 1.0
    team: Annotated[str | None, opt(LOAD, "Team of the job; the trace's first by default.")] = None
    on: Annotated[str | None, opt(LOAD, "GPU type; any by default.", "--on")] = None
    priority: Annotated[int, opt(LOAD, "Priority of the job.")] = 0
    at_h: Annotated[
        float | None,
        opt(LOAD, "Hour of submission on the trace's clock; its last by default.", "--at-h", min=0),
    ] = None
    record: Annotated[
        int, opt(ANALYSIS, "Recent jobs that the range is taken from.", min=2, max=1000)
    ] = 100
    seed: Seed = 0
    output: Output = Form.TABLE
    as_json: Json = False


def eta(options: EtaOptions) -> None:
    """Estimate when a job would start on a shared cluster, with an 80 % range."""
    from gpuplan import api
    from gpuplan.domain.cluster.answer import EtaRequest
    from gpuplan.units import HOUR

    request = EtaRequest(
        n_accelerators=options.gpus,
        duration_s=options.hours * HOUR,
        team=options.team,
        accelerator=options.on,
        priority=options.priority,
        at_s=None if options.at_h is None else options.at_h * HOUR,
        n_record=options.record,
        seed=options.seed,
    )
    with busy("simulating futures of the cluster"):
        found = api.eta(options.cluster, options.jobs, request)
    emit(api.eta_sheet(found), chosen(options.output, as_json=options.as_json))
