"""Rows of training measurements: cells of a table in the published form in, conditions out.

Blank stays None: what a blank means is decided where the row becomes a configuration.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpuplan.calibration.tables import read_rows
from gpuplan.calibration.training.models import Dimensions

TABLES = ("llm_training.csv", "llm_finetune.csv", "llm_finetune_scripts.csv")
FINE_TUNING = ("lora", "qlora", "sft", "full")
MEASURED = ("step_s", "tokens_per_s_per_accelerator", "mfu_pct")
DEGREES = ("tp", "pp", "vp", "cp", "ep", "dp")
NUMBER = re.compile(r"[-+]?\d*\.?\d+(e[-+]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """One measurement with its conditions; columns that are not there count as blank."""

    cells: Mapping[str, str | None]

    def text(self, column: str) -> str:
        """The cell as written, without spaces around it."""
        return (self.cells.get(column) or "").strip()

    def lower(self, column: str) -> str:
        """The cell as written, in lower case."""
        return self.text(column).lower()

    def joined(self, *columns: str) -> str:
        """Several cells as one text, with spaces between them."""
        return " ".join(self.text(column) for column in columns)

    def number(self, column: str) -> float | None:
        """The cell's number, None where it is none."""
        text = self.text(column)
        return float(text) if NUMBER.fullmatch(text) else None

    def count(self, column: str) -> int | None:
        """The cell's number as a whole one."""
        number = self.number(column)
        return None if number is None else round(number)

    @property
    def name(self) -> str:
        """What an error calls the row."""
        return self.text("id") or "row"

    @property
    def n_accelerators(self) -> int:
        """The accelerators of the run, one where the row does not say."""
        count = self.count("n_accelerators")
        return 1 if count is None else count

    @property
    def degrees(self) -> dict[str, int]:
        """The degrees of parallelism that the row gives."""
        found = {name: self.count(name) for name in DEGREES}
        return {name: n for name, n in found.items() if n is not None}

    @property
    def dimensions(self) -> Dimensions | None:
        """The model by its dimensions, where the row gives layers and width."""
        n_layers, hidden = self.count("n_layers"), self.count("hidden")
        if not n_layers or not hidden:
            return None
        n_heads, n_vocab = self.count("heads"), self.count("vocab")
        return Dimensions(n_layers=n_layers, hidden=hidden, n_heads=n_heads, n_vocab=n_vocab)

    @property
    def measured(self) -> dict[str, float]:
        """The measured figures by metric, as published."""
        found = {metric: self.number(f"measured_{metric}") or 0.0 for metric in MEASURED}
        return {metric: value for metric, value in found.items() if value > 0}

    @property
    def regime(self) -> str:
        """Pre-training, or fine-tuning of any kind."""
        return "fine-tuning" if self.lower("task") in FINE_TUNING else "pre-training"


def shipped_rows() -> list[TrainingRow]:
    """The rows that the calibration rests on: pre-training and fine-tuning."""
    return [TrainingRow(cells) for name in TABLES for cells in read_rows(name)]
