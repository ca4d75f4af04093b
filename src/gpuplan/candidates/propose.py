"""Every deployment worth a look: accelerators x layouts x precisions x settings x shares.

Nothing is judged here. What cannot run is proposed all the same and leaves later with a reason.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from gpuplan.domain.hardware.devices import Accelerator, MigProfile
from gpuplan.domain.inference.performance import EngineChoice
from gpuplan.domain.inference.serving import EngineSettings, ServingLayout
from gpuplan.domain.model.precision import sixteen_on
from gpuplan.domain.noun import dataclass
from gpuplan.domain.plan.candidate import AcceleratorShare, Candidate
from gpuplan.domain.scenario.workload import Layout

USUAL_NODE = 8  # accelerators of a node: tensor parallelism is tried up to here everywhere
MOST_TENSOR = 64
STAGES = (2, 4, 8, 16)
TIME_SLICES = (2, 4)
SMALL_BATCH_TOKENS = (2048, 512)
SettingsFor = Callable[[Accelerator], EngineSettings]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalSpec:
    """What candidates are proposed for."""

    workload: str
    precisions: tuple[str, ...]  # allowed; the published one where the user named none
    cache_precision: str
    narrow: tuple[str, ...]  # of the precisions: narrower than published
    is_moe: bool
    engine: EngineChoice
    layout: Layout | None  # where the user insists
    limits_gaps: bool  # single gaps between tokens have an SLO: smaller prefill chunks may help


def propose(
    spec: ProposalSpec, accelerators: Iterable[Accelerator], settings_for: SettingsFor
) -> tuple[Candidate, ...]:
    """Whole accelerators, without pipeline stages."""
    return tuple(
        _candidate(spec, card, layout, precision=precision, settings=settings)
        for card in accelerators
        for layout in layouts_for(spec, card)
        for precision in spec.precisions
        for settings in _settings(spec, settings_for(card))
    )


def _candidate(
    spec: ProposalSpec,
    card: Accelerator,
    layout: ServingLayout,
    *,
    precision: str,
    settings: EngineSettings,
    share: AcceleratorShare | None = None,
) -> Candidate:
    return Candidate(
        workload=spec.workload,
        accelerator=card.id,
        layout=layout,
        precision=sixteen_on(precision, card.peak_flop_per_s),
        cache_precision=sixteen_on(spec.cache_precision, card.peak_flop_per_s),
        engine=spec.engine,
        settings=settings,
        share=share,
        is_quantized_below=precision in spec.narrow,
    )


def _settings(spec: ProposalSpec, usual: EngineSettings) -> list[EngineSettings]:
    """The engine's defaults, and smaller chunks where single gaps have an SLO."""
    sizes = [n for n in SMALL_BATCH_TOKENS if spec.limits_gaps and n < usual.max_batch_tokens]
    return [usual, *(_with_chunks(usual, n) for n in sizes)]


def _with_chunks(usual: EngineSettings, n_tokens: int) -> EngineSettings:
    n_sequences = min(usual.max_sequences, n_tokens)
    return replace(usual, max_batch_tokens=n_tokens, max_sequences=n_sequences)


def n_in_domain(card: Accelerator) -> int:
    """Accelerators that a scale-up link joins; 1 where there is none."""
    return card.scale_up.n_domain if card.scale_up else 1


def n_in_server(card: Accelerator) -> int:
    """Accelerators that may share each layer: of a usual server, or of a larger NVLink domain."""
    return 1 if card.is_cpu else max(USUAL_NODE, n_in_domain(card))


def layouts_for(spec: ProposalSpec, card: Accelerator) -> list[ServingLayout]:
    """Powers of two up to the scale-up domain or a usual node; experts by EP as well as by TP."""
    requested = spec.layout
    if requested is not None and (insisted := _insisted(requested)) is not None:
        return [insisted]
    most = min(MOST_TENSOR, n_in_server(card))
    sizes = [2**k for k in range(most.bit_length()) if 2**k <= most]
    layouts = [ServingLayout(tp=tp) for tp in sizes]
    if spec.is_moe:
        layouts += [ServingLayout(tp=tp, ep=tp) for tp in sizes if tp > 1]
        layouts += [ServingLayout(tp=1, dp=n, ep=n) for n in sizes if n > 1]
    return layouts


def _insisted(requested: Layout) -> ServingLayout | None:
    """The layout that the user insists on; None where no size is given."""
    sizes = (
        requested.n_tensor,
        requested.n_pipeline,
        requested.n_data,
        requested.n_expert,
        requested.n_context,
    )
    if not any(sizes):
        return None
    tp, pp, dp, ep, cp = (size or 1 for size in sizes)
    return ServingLayout(tp=tp, pp=pp, dp=dp, ep=ep, cp=cp)


def with_stages(not_fitting: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Pipeline stages over the widest layout of each accelerator, of those that do not fit."""
    widest: dict[tuple[str, str, int], Candidate] = {}
    for found in not_fitting:
        if found.layout.dp > 1 or found.layout.ep > 1 or found.layout.pp > 1:
            continue
        tokens = found.settings.max_batch_tokens if found.settings else 0
        key = (found.accelerator, found.precision, tokens)
        known = widest.get(key)
        if known is None or known.layout.tp < found.layout.tp:
            widest[key] = found
    return tuple(
        replace(found, layout=replace(found.layout, pp=pp))
        for found in widest.values()
        for pp in STAGES
    )


def with_wider_experts(not_fitting: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Data-parallel attention, its experts dealt over more than the widest that was short."""
    widest: dict[tuple[str, str], Candidate] = {}
    for found in not_fitting:
        key = (found.accelerator, found.precision)
        if found.layout.dp > max(1, widest[key].layout.dp if key in widest else 1):
            widest[key] = found
    return tuple(
        replace(found, layout=replace(found.layout, dp=n, ep=n * found.layout.tp))
        for found in widest.values()
        for n in (2 * found.layout.dp, 4 * found.layout.dp)
        if n <= MOST_TENSOR
    )


def over_servers(
    found: Sequence[Candidate],
    networks: Mapping[str, Sequence[float]],
    cards: Mapping[str, Accelerator],
) -> tuple[Candidate, ...]:
    """The same inside one server, or over servers that are joined at each stated rate."""
    return tuple(
        replace(each, layout=replace(each.layout, network_bytes_per_s=rate))
        for each in found
        for rate in _rates_between(
            each, networks.get(each.accelerator, ()), n_in_server(cards[each.accelerator])
        )
    )


def _rates_between(
    candidate: Candidate, stated: Sequence[float], n_server: int
) -> tuple[float | None, ...]:
    """Rates between servers to judge it with; None: inside one server."""
    layout = candidate.layout
    if not stated:
        return (None,)
    if layout.pp == 1:
        is_wide = layout.dp > 1 and layout.tp <= n_server < layout.n_joined
        return tuple(stated) if is_wide else (None,)
    is_small = candidate.n_accelerators <= USUAL_NODE
    return (None, *stated) if is_small else tuple(stated)


def shares_of(
    card: Accelerator, profiles: Sequence[MigProfile], needed_bytes: float
) -> Iterator[AcceleratorShare]:
    """Parts of this accelerator that could hold so much: MIG, else turns."""
    if profiles:
        for profile in profiles:
            if profile.n_max > 1 and profile.memory_bytes >= needed_bytes:
                yield AcceleratorShare(
                    kind="mig",
                    name=profile.name,
                    n_per_accelerator=profile.n_max,
                    compute_frac=profile.compute_frac,
                    memory_bytes=profile.memory_bytes,
                )
        return
    for n in TIME_SLICES:
        memory = card.memory.visible_bytes / n
        if memory >= needed_bytes and not card.is_cpu:
            yield AcceleratorShare(
                kind="time_slice",
                name=f"1/{n}",
                n_per_accelerator=n,
                compute_frac=1.0 / n,
                memory_bytes=memory,
            )


def on_shares(
    spec: ProposalSpec,
    card: Accelerator,
    shares: Iterable[AcceleratorShare],
    settings_for: SettingsFor,
) -> tuple[Candidate, ...]:
    """Small models on slices of an accelerator."""
    return tuple(
        _candidate(
            spec,
            card,
            ServingLayout(),
            precision=precision,
            settings=settings_for(shared_device(card, share)),
            share=share,
        )
        for share in shares
        for precision in spec.precisions
    )


def shared_device(card: Accelerator, share: AcceleratorShare) -> Accelerator:
    """The part as a device of its own: its share of arithmetic, memory and bandwidth."""
    memory_frac = min(1.0, share.memory_bytes / card.memory.visible_bytes)
    # A MIG profile's memory slices carry their share of the bandwidth; turns share it by time.
    bandwidth_frac = memory_frac if share.kind == "mig" else share.compute_frac
    memory = replace(
        card.memory,
        visible_bytes=share.memory_bytes,
        bytes_per_s=card.memory.bytes_per_s * bandwidth_frac,
    )
    peaks = {name: peak * share.compute_frac for name, peak in card.peak_flop_per_s.items()}
    return replace(card, memory=memory, peak_flop_per_s=peaks, scale_up=None)
