"""From the file's units to base units: the place, the machines, and the terms."""

from gpuplan.domain.model.precision import format_named
from gpuplan.domain.ranges import Range
from gpuplan.domain.scenario.demand import Growth
from gpuplan.domain.scenario.site import Circuit, Installed, NodeNetwork, OwnedNodes, Rack, Site
from gpuplan.domain.scenario.terms import (
    Budget,
    Choice,
    HardwarePrice,
    Policy,
    Prices,
    Purchase,
    PurchaseExtras,
    Resilience,
    StatedOffer,
    Team,
    TokenPrice,
)
from gpuplan.errors import InvariantError, one
from gpuplan.inputs.scenario.assumptions import Assumptions
from gpuplan.inputs.schema.keys import Spread
from gpuplan.inputs.schema.scenario import GrowthSpec
from gpuplan.inputs.schema.site import (
    BudgetSpec,
    ChoiceSpec,
    CircuitSpec,
    HardwarePriceSpec,
    NetworkSpec,
    OfferSpec,
    OwnedSpec,
    PolicySpec,
    PricesSpec,
    PurchaseExtrasSpec,
    RackSpec,
    SiteSpec,
    TeamSpec,
    TokenPriceSpec,
)
from gpuplan.units import GB, GBIT, GIB, GRAM, KW, KWH, MINUTE, MONTH, TB, WEEK, YEAR

TONNE = 1e3  # kg
MILLION = 1e6
PURCHASES: tuple[Purchase, ...] = ("on_demand", "reserved", "capacity_block", "owned")


def times(value: float | None, factor: float) -> float | None:
    """The value in another unit; absent stays absent."""
    return None if value is None else value * factor


def spread(value: Spread | None, factor: float = 1.0) -> Range | None:
    """The range in another unit; absent stays absent."""
    return None if value is None else range_of(value, factor)


def range_of(value: Spread, factor: float = 1.0) -> Range:
    """The range in another unit."""
    return Range(low=value.low, mid=value.mid, high=value.high).times(factor)


def precision_names(names: list[str] | None) -> tuple[str, ...]:
    """The formats' own names, each once."""
    found = [format_named(name) for name in names or ()]
    return tuple(dict.fromkeys(form.name for form in found if form is not None))


def growth(spec: GrowthSpec) -> Growth:
    """How demand moves."""
    return Growth(
        per_month_frac=range_of(spec.per_month_frac),
        monthly_profile=tuple(spec.monthly_profile or ()),
        lead_time_s=spread(spec.lead_time_weeks, WEEK),
        trigger_utilization_frac=spec.trigger_utilization_frac,
        target_utilization_frac=spec.target_utilization_frac,
    )


def circuit(spec: CircuitSpec) -> Circuit:
    """The supply of one rack."""
    return Circuit(
        line_v=spec.volts,
        breaker_a=spec.amps,
        n_phases=spec.phases,
        n_feeds=2 if spec.feeds == "A+B" else 1,
        n_circuits_per_feed=spec.circuits_per_feed,
        derate_frac=spec.derate_frac,
    )


def _rack(spec: RackSpec) -> Rack:
    return Rack(
        n_units=spec.units_u,
        power_w=times(spec.power_kw, KW),
        circuit=circuit(spec.circuit) if spec.circuit else None,
        cooling_w=times(spec.cooling_kw, KW),
        weight_kg=spec.weight_kg,
    )


def _network(spec: NetworkSpec) -> NodeNetwork:
    return NodeNetwork(
        kind=spec.kind,
        n_nics_per_node=spec.nics_per_node,
        nic_bytes_per_s=spec.nic_gbit_per_s * GBIT,
        oversubscription_ratio=spec.oversubscription,
    )


def site(spec: SiteSpec) -> Site:
    """One's own place."""
    return Site(
        region=spec.region,
        power_w=times(spec.power_kw, KW),
        is_facility_power=spec.power_scope == "facility",
        n_racks=spec.racks,
        rack=_rack(spec.rack) if spec.rack else None,
        cooling=spec.cooling,
        pue_ratio=spec.pue,
        electricity_usd_per_j=spread(spec.electricity_usd_per_kwh, 1 / KWH),
        demand_usd_per_w_month=times(spec.demand_charge_usd_per_kw_month, 1 / KW),
        carbon_kg_per_j=times(spec.carbon_g_per_kwh, GRAM / KWH),
        network=_network(spec.network) if spec.network else None,
        software=Installed(**spec.software.model_dump()) if spec.software else None,
    )


def owned(spec: OwnedSpec) -> OwnedNodes:
    """Machines that are there already."""
    return OwnedNodes(
        accelerator=spec.accelerator,
        n_nodes=spec.nodes,
        n_accelerators_per_node=spec.accelerators_per_node,
        name=spec.name,
        node_max_w=times(spec.node_max_kw, KW),
        accelerator_cap_w=spec.accelerator_cap_w,
        n_host_cores=spec.host_cores,
        host_memory_bytes=times(spec.host_memory_gib, GIB),
        n_nics=spec.nics,
        nic_bytes_per_s=times(spec.nic_gbit_per_s, GBIT),
        peak_utilization_frac=spec.peak_utilization_frac,
        mean_utilization_frac=spec.mean_utilization_frac,
    )


def budget(spec: BudgetSpec) -> Budget:
    """Limits of money."""
    return Budget(
        horizon_s=spec.horizon_months * MONTH,
        capex_usd=spec.capex_usd,
        opex_usd_per_year=spec.opex_usd_per_year,
        usd_per_month=spec.usd_per_month,
        total_usd=spec.total_usd,
        discount_frac_per_year=spec.discount_rate_frac_per_year,
        depreciation_s=times(spec.depreciation_years, YEAR),
        residual_frac=spread(spec.residual_frac),
    )


def policy(spec: PolicySpec, assumptions: Assumptions) -> Policy:
    """What is allowed."""
    return Policy(
        accelerators=_choice(spec.accelerators),
        clouds=_choice(spec.clouds),
        regions=_choice(spec.regions),
        precisions=precision_names(spec.precisions),
        purchases=_purchases(spec, assumptions),
        resilience=Resilience(
            survive=spec.survive,
            n_failures=spec.survive_count,
            max_utilization_frac=spec.max_utilization_frac,
        ),
        n_accelerators_max=spec.max_accelerators,
        is_tensor_across_islands_allowed=spec.tensor_parallel_across_islands,
        carbon_max_kg_per_year=times(spec.max_co2_t_per_year, TONNE),
    )


def _choice(spec: ChoiceSpec) -> Choice:
    return Choice(allowed=tuple(spec.allowed or ()), forbidden=tuple(spec.forbidden or ()))


def _purchases(spec: PolicySpec, assumptions: Assumptions) -> tuple[Purchase, ...]:
    if spec.purchases is not None:
        return tuple(dict.fromkeys(spec.purchases))
    allowed: tuple[Purchase, ...] = (*PURCHASES, "spot") if spec.spot_allowed else PURCHASES
    why = "everything but spot, which can be taken away"
    if spec.spot_allowed:
        why = "everything, spot being allowed"
    what = "Ways to get hardware"
    assumptions.add(("policy", "purchases"), list(allowed), why, what=what)
    return allowed


def prices(spec: PricesSpec) -> Prices:
    """Prices that the user knows."""
    return Prices(
        offers=tuple(_offer(offer) for offer in spec.offers),
        hardware=tuple(_hardware(price) for price in spec.hardware),
        tokens=tuple(_tokens(price) for price in spec.token_services),
        egress_usd_per_byte=times(spec.egress_usd_per_gb, 1 / GB),
        storage_usd_per_byte_month=times(spec.storage_usd_per_tb_month, 1 / TB),
        colocation_usd_per_w_month=times(spec.colocation_usd_per_kw_month, 1 / KW),
        staff_usd_per_year=spec.staff_usd_per_year,
        support_frac_per_year=spec.support_frac_per_year,
        licence_usd_per_accelerator_year=spec.licence_usd_per_accelerator_year,
        carbon_usd_per_kg=times(spec.carbon_usd_per_t, 1 / TONNE),
        extras=_extras(spec.purchase_extras),
    )


def _extras(spec: PurchaseExtrasSpec) -> PurchaseExtras:
    return PurchaseExtras(
        freight_frac=spec.freight_frac,
        tax_frac=spec.tax_frac,
        install_frac=spec.installation_frac,
        gear_frac=spec.network_gear_frac,
        spares_frac=spec.spares_frac,
        loan_frac=spec.loan_frac,
        loan_interest_frac_per_year=spec.loan_interest_frac_per_year,
        loan_s=times(spec.loan_months, MONTH),
    )


def _offer(spec: OfferSpec) -> StatedOffer:
    of_accelerators = spread(spec.usd_per_accelerator_h, spec.accelerators_per_node)
    price = spread(spec.usd_per_node_h) or of_accelerators
    if price is None:
        fix = "this is a fault of the program; please report it"
        what = f"offer of {spec.accelerator} is checked, yet without price"
        raise one(InvariantError, "scenario", "prices.offers", what, fix)
    return StatedOffer(
        name=spec.name or spec.accelerator,
        accelerator=spec.accelerator,
        price_usd_per_h=price,
        n_accelerators_per_node=spec.accelerators_per_node,
        purchase=spec.purchase,
        n_vcpus_per_node=spec.vcpus_per_node,
        cloud=spec.cloud,
        region=spec.region,
        n_nodes_max=spec.availability.max_nodes,
        term_s=times(spec.term_months, MONTH),
        cold_start_s=spread(spec.availability.cold_start_min, MINUTE),
        interruptions_per_s=times(spec.availability.interruptions_per_week, 1 / WEEK),
    )


def _hardware(spec: HardwarePriceSpec) -> HardwarePrice:
    return HardwarePrice(
        accelerator=spec.accelerator,
        accelerator_usd=spread(spec.usd_per_accelerator),
        node_usd=spread(spec.usd_per_node),
        porting_usd=spread(spec.porting_usd),
        lead_time_s=spread(spec.lead_time_weeks, WEEK),
    )


def _tokens(spec: TokenPriceSpec) -> TokenPrice:
    return TokenPrice(
        name=spec.name,
        input_usd_per_token=spec.usd_per_m_input_tokens / MILLION,
        cached_usd_per_token=times(spec.usd_per_m_cached_tokens, 1 / MILLION),
        output_usd_per_token=spec.usd_per_m_output_tokens / MILLION,
    )


def team(spec: TeamSpec) -> Team:
    """Who shares the fleet."""
    return Team(
        name=spec.name, n_accelerators_quota=spec.quota_accelerators, share_ratio=spec.share
    )
