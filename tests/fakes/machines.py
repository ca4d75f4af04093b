"""A machine of eight boards and the racks of the small circuits."""

from gpuplan.domain.scenario.site import Circuit, Rack, Site
from gpuplan.domain.system.facility import BoardDraw, NodeDraw, PsuSet
from gpuplan.units import KW

BOARD = BoardDraw(limit_w=700.0, idle_w=70.0, typical_w=600.0)
NODE = NodeDraw(
    name="8 x H100",
    n_accelerators=8,
    idle_w=2.2 * KW,
    typical_w=0.7 * 10.2 * KW,
    max_w=10.2 * KW,
    board=BOARD,
    height_u=8.0,
    weight_kg=130.0,
    psu=PsuSet(n_supplies=6, each_w=3_300.0),
)
CIRCUIT = Circuit(
    line_v=208.0, breaker_a=60.0, n_phases=3, n_feeds=2, n_circuits_per_feed=1, derate_frac=0.8
)
RACK = Rack(circuit=CIRCUIT)
SITE = Site(n_racks=4, rack=RACK, cooling="air", pue_ratio=1.4)
