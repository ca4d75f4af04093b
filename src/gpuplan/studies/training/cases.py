"""Measured training rows as numbers: configuration, basis, and the step time that was measured."""

from collections.abc import Sequence
from typing import NamedTuple

from gpuplan.calibration.training.rows import TrainingRow
from gpuplan.calibration.training.stacks import SCRIPTS
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.model.network import Model
from gpuplan.errors import PlannerError
from gpuplan.performance.training.basis import StepBasis, step_basis
from gpuplan.studies.measured.training import Configuration, configuration_of


class Case(NamedTuple):
    """One row, ready for the formula."""

    row: TrainingRow
    configuration: Configuration
    basis: StepBasis

    @property
    def tokens_per_accelerator(self) -> float:
        """Tokens of one step by accelerators."""
        setup, layout = self.configuration.setup, self.configuration.layout
        tokens = setup.micro_batch * setup.sequence_tokens * setup.n_micro_batches * layout.dp
        return tokens / layout.n_accelerators

    @property
    def measured_step_s(self) -> float | None:
        """Step time of the modelled batch; a batch that does not divide is scaled to it."""
        measured, setup = self.row.measured, self.configuration.setup
        batch, n = self.row.count("global_batch"), self.configuration.layout.n_accelerators
        if "step_s" in measured and batch:
            return (
                measured["step_s"] * self.tokens_per_accelerator * n / batch / setup.sequence_tokens
            )
        if "tokens_per_s_per_accelerator" in measured:
            return self.tokens_per_accelerator / measured["tokens_per_s_per_accelerator"]
        return None

    @property
    def is_complete(self) -> bool:
        """The row says how long the sequences are: without it nothing can be learnt."""
        return self.row.count("seq_len") is not None


def case_of(row: TrainingRow, catalog: Catalog, *, model: Model | None = None) -> Case:
    """The row as nouns and numbers, or of a model that is at hand."""
    found = configuration_of(row, catalog, model=model)
    basis = step_basis(
        found.model, found.accelerator, found.setup, layout=found.layout, fabric=found.fabric
    )
    return Case(row, found, basis)


def cases_of(
    rows: Sequence[TrainingRow], catalog: Catalog
) -> tuple[list[Case], list[tuple[TrainingRow, str]]]:
    """Rows that can be predicted, and the others with the reason; none is lost."""
    cases: list[Case] = []
    refused: list[tuple[TrainingRow, str]] = []
    for row in rows:
        try:
            cases.append(case_of(row, catalog))
        except PlannerError as error:
            refused.append((row, str(error)))
    return cases, refused


def kind_of(case: Case) -> str:
    """The kind of case whose residuals give its range: script, dense or sparse."""
    if case.configuration.stack.name == SCRIPTS:
        return "script"
    return "dense" if case.configuration.labels["architecture"] == "dense" else "sparse"
