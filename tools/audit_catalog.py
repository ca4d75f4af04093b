"""Draw facts of the catalog by seed and print each with its value and source, to check by hand.

python tools/audit_catalog.py [seed] [--sources]

100 facts of accelerators, 100 of offers, 100 of models, 40 of software. A line is a kind, an item,
a quantity, a value and a source; --sources prints the addresses of the sources drawn. Ends with 1
where any fact of the whole catalog, drawn or not, has no source that is known.
"""

import json
import random
import sys
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from gpuplan.catalog.load import read_catalog, read_market_sources  # noqa: E402
from gpuplan.catalog.models import find_model, models_in_catalog  # noqa: E402
from gpuplan.catalog.offers import read_offers  # noqa: E402
from gpuplan.csv_rows import packaged_rows  # noqa: E402

DRAWN = {"accelerator": 100, "offer": 100, "model": 100, "software": 40}
SOFTWARE = ("arch", "cuda", "drivers", "frameworks", "packages", "torch", "wheels")


class Drawn(NamedTuple):
    """One figure as the catalog states it."""

    kind: str
    item: str
    quantity: str
    value: str
    source: str

    def __str__(self) -> str:
        return f"{self.kind:<12}{self.item:<46} {self.quantity:<26} {self.value:<28} {self.source}"


def accelerator_facts() -> list[Drawn]:
    """Every preferred figure of every accelerator."""
    catalog = read_catalog()
    return [
        Drawn("accelerator", fact.item, fact.quantity, f"{fact.value} {fact.unit}", fact.source)
        for item in catalog.accelerators
        for fact in catalog.facts[str(item)]
        if fact.preferred
    ]


def offer_facts() -> list[Drawn]:
    """Price, accelerators and host of every offer of the package."""
    found = []
    for offer in read_offers():
        shape = offer.shape
        item = f"{shape.cloud} {shape.name} {offer.region}"
        of = "|".join(str(name) for name in shape.accelerators)
        price = f"${offer.usd_per_h:g}/h as of {offer.price_date}"
        found += [
            Drawn("offer", item, "price", price, offer.source),
            Drawn("offer", item, "accelerators", f"{shape.n_accelerators} x {of}", offer.source),
            Drawn("offer", item, "vCPU", str(shape.n_vcpu), offer.source),
        ]
    return found


def model_facts() -> list[Drawn]:
    """Every field of every configuration, the parameter count and the longest context."""
    path = files("gpuplan.catalog").joinpath("data/models.jsonl")
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    found = [
        Drawn("model", row["id"], key, json.dumps(value)[:28], row["source"])
        for row in rows
        for key, value in row["config"].items()
    ]
    sources = {row["id"]: row["source"] for row in rows}
    for name in models_in_catalog():
        model = find_model(name)
        found.append(Drawn("model", name, "parameters", f"{model.n_params:,}", sources[name]))
    contexts = packaged_rows("gpuplan.catalog", "data/model_contexts.csv")
    tokens = [(row["id"], row["context_tokens"], row["basis"]) for row in contexts]
    return found + [Drawn("model", id, "longest context", n, basis) for id, n, basis in tokens]


def software_facts() -> list[Drawn]:
    """Every row of the software tables."""
    found = []
    for table in SOFTWARE:
        for row in packaged_rows("gpuplan.catalog", f"data/software_{table}.csv"):
            cells = dict(row)
            source, item = cells.pop("source"), " ".join(list(cells.values())[:2])
            value = ", ".join(f"{key} {cell}" for key, cell in list(cells.items())[2:] if cell)
            found.append(Drawn("software", item, table, value, source))
    return found


def addresses() -> dict[str, str]:
    """The address of every source by its key."""
    known = {**read_catalog().sources, **read_market_sources()}
    return {str(key): source.url or source.title for key, source in known.items()}


def sourceless(found: Iterable[Drawn]) -> list[Drawn]:
    """Facts whose source is empty or, where sources are keys, unknown."""
    known = addresses()
    return [d for d in found if not d.source or (d.kind != "model" and d.source not in known)]


def main() -> int:
    """Print the draw; 1 where any fact has no source."""
    numbers = [word for word in sys.argv[1:] if word.isdigit()]
    draw = random.Random(int(numbers[0]) if numbers else 0)
    everything = [*accelerator_facts(), *offer_facts(), *model_facts(), *software_facts()]
    drawn: list[Drawn] = []
    for kind, n in DRAWN.items():
        of_kind = [fact for fact in everything if fact.kind == kind]
        drawn += draw.sample(of_kind, min(n, len(of_kind)))
    print("\n".join(str(fact) for fact in drawn))
    if "--sources" in sys.argv:
        known = addresses()
        for key in sorted({fact.source for fact in drawn}):
            print(f"{key:<30} {known.get(key, '')}")
    bad = sourceless(everything)
    print(f"{len(everything):,} facts, {len(drawn)} drawn, {len(bad)} without a source")
    for fact in bad[:20]:
        print("no source:", fact)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
