"""Bill of materials and software of a plan, in: groups and pools; out: lines of one object."""

from collections.abc import Iterator, Sequence

from gpuplan.catalog.software.recommend import recommended_stack
from gpuplan.design.storage import cheapest
from gpuplan.domain.hardware.catalog import Catalog
from gpuplan.domain.hardware.devices import AcceleratorId
from gpuplan.domain.hardware.software import SoftwareLayer
from gpuplan.domain.plan.answer import PlannedPool
from gpuplan.domain.system.designed import GroupDesign, MaterialLine
from gpuplan.domain.system.parts import FabricPlan


def materials_of(groups: Sequence[GroupDesign]) -> Iterator[MaterialLine]:
    """Everything that is bought or rented, group by group."""
    for made in groups:
        group = made.group
        yield _line(made, "server", group.server, group.n_nodes)
        if group.n_accelerators:
            yield _line(made, "accelerator", group.accelerator, group.n_accelerators)
        if made.spares is not None and made.spares.n_spares and group.is_own:
            yield _line(made, "spare server", group.server, made.spares.n_spares)
        yield from _around(made)


def _line(made: GroupDesign, part: str, name: str, n: int) -> MaterialLine:
    group = made.group
    seller = ", ".join(filter(None, (group.cloud, group.region)))
    supply = " at ".join(filter(None, (group.purchase, seller)))
    return MaterialLine(part=part, name=name, n_units=n, workload=group.workload, supply=supply)


def _around(made: GroupDesign) -> Iterator[MaterialLine]:
    """Storage and networks of the group."""
    workload, is_there = made.group.workload, made.group.purchase == "existing"
    supply = "existing" if is_there else "to be provided"
    if made.storage:
        choice = cheapest(made.storage)
        yield MaterialLine(
            part="storage",
            name=choice.tier.name,
            n_units=choice.n_units,
            workload=workload,
            supply=supply,
            usd=None if is_there else choice.usd,
        )
    for fabric in made.networks:
        yield MaterialLine(
            part="switch",
            name=f"{fabric.switch.name}, {fabric.purpose}",
            n_units=fabric.counts.n_switches,
            workload=workload,
            supply=supply,
            usd=None if is_there else fabric.usd,
        )
        yield from _cables(fabric, workload, supply)


def _cables(fabric: FabricPlan, workload: str, supply: str) -> Iterator[MaterialLine]:
    for run in fabric.runs:
        kind = run.link.name if run.link else run.medium
        name = f"{kind}, {run.between}, up to {run.longest_m:.0f} m"
        yield MaterialLine(
            part="cable", name=name, n_units=run.n_cables, workload=workload, supply=supply
        )


def software_of(
    pools: Sequence[PlannedPool], catalog: Catalog
) -> Iterator[tuple[str, tuple[SoftwareLayer, ...]]]:
    """The stack of every pool that names an engine or a framework."""
    for pool in pools:
        name, _, number = pool.engine.partition(" ")
        card = catalog.accelerators.get(AcceleratorId(pool.accelerator))
        if name and card is not None:
            yield (
                pool.workload,
                recommended_stack(name, number, arch=card.instruction_set, maker=card.vendor),
            )
