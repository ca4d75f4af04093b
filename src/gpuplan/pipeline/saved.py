"""What is made from a plan that stands: its certificate, its verdict, files for other tools."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from gpuplan.domain.plan.answer import Answer
from gpuplan.domain.plan.certificate import Verified
from gpuplan.domain.plan.deployed import RenderedFile
from gpuplan.domain.requests.plan import PlanRequest
from gpuplan.inputs.documents.yaml_reader import read_yaml
from gpuplan.inputs.plan_file import plan_of, read_plan
from gpuplan.pipeline.design import design_plan
from gpuplan.render.targets import RACKED, rendered
from gpuplan.report.plan.document import plan_document
from gpuplan.studies.day_replay.fresh import plan_facts
from gpuplan.studies.market.purchases import OtherPurchase, other_purchases
from gpuplan.studies.planning.gate import refuse
from gpuplan.studies.planning.inputs import PlanInputs, plan_inputs
from gpuplan.studies.rendering.deployed import deployed_of, with_racks
from gpuplan.verification.certify import certificate_of


def certified(inputs: PlanInputs, answer: Answer) -> Answer:
    """The answer with the certificate of its plan."""
    if answer.proof is None:
        return answer
    checks = certificate_of(plan_document(answer), plan_facts(inputs, answer))
    return replace(answer, proof=replace(answer.proof, certificate=checks))


def verify(path: Path, *, overlays: Sequence[Path] = (), store: Path | None = None) -> Verified:
    """Every check of a plan file, made again from the file alone."""
    document = read_yaml(path)
    answer = plan_of(document)
    refuse(answer)
    facts = plan_facts(_inputs(answer, overlays, store), answer)
    return Verified(name=answer.name, checks=certificate_of(document.data, facts))


def render(
    path: Path,
    to: str = "kubernetes",
    *,
    overlays: Sequence[Path] = (),
    store: Path | None = None,
) -> tuple[RenderedFile, ...]:
    """A plan file as files that other tools run: manifests, commands, rules, tables."""
    answer = read_plan(path)
    inputs = _inputs(answer, overlays, store)
    deployed = deployed_of(inputs, answer)
    if to in RACKED:
        deployed = with_racks(deployed, design_plan(answer, inputs.catalog))
    return rendered(deployed, to)


def purchases(answer: Answer) -> tuple[OtherPurchase, ...]:
    """The compared fleets under purchase options that the plan may not use."""
    return tuple(other_purchases(_inputs(answer, (), None).market, answer.decision.comparison))


def _inputs(answer: Answer, overlays: Sequence[Path], store: Path | None) -> PlanInputs:
    """Scenario, catalog and market that the plan was made from."""
    made = answer.provenance
    request = PlanRequest(
        target=answer.name,
        tree=made.scenario,
        today=date.fromisoformat(made.as_of),
        seed=made.seed,
        overlays=tuple(overlays),
        store=store,
    )
    return plan_inputs(request)
