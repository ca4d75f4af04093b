"""Sizing of one workload: what the user knows of it first, then its kind of work."""

from dataclasses import replace
from functools import cache

from gpuplan.candidates.reserve import reserve_notes
from gpuplan.domain.plan.sizing import PriceOf, Sized, Sizing
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Generic, Training, Workload
from gpuplan.stages import begin
from gpuplan.studies.sizing.given_capacity import given_sizes
from gpuplan.studies.sizing.language import by_price, language_sizes
from gpuplan.studies.sizing.likely import likely
from gpuplan.studies.sizing.one_off import as_jobs
from gpuplan.studies.sizing.task import SizingContext, SizingTask, task_of


def size_workload(workload: Workload, scenario: Scenario, context: SizingContext) -> Sizing:
    """Every candidate of the workload: sized, rejected with a reason, or skipped with a bound."""
    begin(f"sizing and simulating candidates for {workload.name}")
    if context.read_trace is not None:
        context = replace(context, read_trace=cache(context.read_trace))  # read once, used twice
    task = task_of(workload, scenario, context)
    found = _sizes(task, scenario)
    owned = {nodes.accelerator for nodes in scenario.owned}
    remarks = (_with_price_age(task, each, owned) for each in found.sized)
    return replace(found, sized=tuple(remarks))


def _with_price_age(task: SizingTask, sized: Sized, owned: set[str]) -> Sized:
    """The fleet with a word on boards that are out of sale and soon out of toolkits."""
    accelerator = sized.candidate.accelerator
    stated = task.catalog.fact(accelerator, "status")
    if stated is None or stated.value != "legacy" or str(accelerator) in owned:
        return sized
    name = task.catalog.accelerators[accelerator].name
    why = f": {stated.note}" if stated.note else ""
    remark = f"{name} is a legacy board{why}; ask how long it is rented and supported"
    return replace(sized, remarks=(remark, *sized.remarks))


def _sizes(task: SizingTask, scenario: Scenario) -> Sizing:
    workload = task.workload
    if isinstance(workload.work, Training) and _is_of_images(task):
        from gpuplan.studies.sizing.training.images import image_training_sizes

        return image_training_sizes(task)
    if isinstance(workload.work, Training):
        from gpuplan.studies.sizing.training.sizer import training_sizes

        return training_sizes(task)  # a run that fails starts again: nothing stands by
    if workload.amount is not None:
        return as_jobs(task, _served(_weighing_all(task)))
    found = _served(task)
    notes = reserve_notes(scenario.policy.resilience)
    return replace(found, assumptions=(*found.assumptions, *notes))


def _is_of_images(task: SizingTask) -> bool:
    """Whether the network that is named learns from images, not from tokens."""
    ref = task.workload.model
    return ref is not None and ref.name is not None and task.model.kind == "vision"


def _weighing_all(task: SizingTask) -> SizingTask:
    """Every candidate is sized: of jobs, one that is dearer by the hour may be cheaper in all."""
    options = replace(task.context.options, is_exhaustive=True)
    return replace(task, context=replace(task.context, options=options))


def _served(task: SizingTask) -> Sizing:
    given, is_complete = given_sizes(task)
    given = _likely(task, given)
    if is_complete or isinstance(task.workload.work, Generic):
        return given
    if task.model.kind in ("encoder", "vision", "diffusion", "speech", "recommender"):
        from gpuplan.studies.sizing.networks import eligible, network_sizes

        found = eligible(task, _likely(task, network_sizes(task)))
        return _merged(given, found, task.context.price)
    return _merged(given, language_sizes(task), task.context.price)


def _likely(task: SizingTask, sizing: Sizing) -> Sizing:
    """Fleets that are not simulated, as large as the probability asked for takes."""
    return replace(sizing, sized=tuple(likely(task, each) or each for each in sizing.sized))


def _merged(given: Sizing, estimated: Sizing, price: PriceOf) -> Sizing:
    """The user's own figures take the place of ours, accelerator by accelerator."""
    known = {sized.candidate.accelerator for sized in given.sized}
    rest = [each for each in estimated.sized if each.candidate.accelerator not in known]
    return replace(
        estimated,
        sized=by_price([*given.sized, *rest], price),
        compared=tuple(s for s in estimated.compared if s.candidate.accelerator not in known),
        rejected=tuple(r for r in estimated.rejected if r.candidate.accelerator not in known),
        skipped=tuple(s for s in estimated.skipped if s.candidate.accelerator not in known),
        assumptions=(*given.assumptions, *estimated.assumptions),
    )
