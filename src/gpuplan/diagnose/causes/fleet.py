"""Causes in hardware, in how devices are handed out, and in monitoring."""

from gpuplan.diagnose.causes.cause import NOTHING, Cause, do

FLEET: dict[str, Cause] = {
    "thermal_throttling": Cause(
        "clocks are lowered because it is too hot",
        "fault",
        (
            do(
                "more air, cleaner filters, cooler inlet, check the pumps",
                "clocks return",
                "facility",
                0.05,
                0.4,
            ),
            do("a lower power limit", "steady clocks instead of swings", "some speed"),
        ),
    ),
    "power_throttling": Cause(
        "clocks are lowered because the power limit is reached",
        "note",
        (
            do(
                "raise the power limit if the circuit allows",
                "clocks return",
                "power and heat",
                0.02,
                0.2,
            ),
            NOTHING,
        ),
    ),
    "device_faults": Cause(
        "the driver reports faults of a device",
        "fault",
        (
            do(
                "drain the node, reset or replace the device",
                "jobs stop dying",
                "a spare",
                0.01,
                1.0,
            ),
        ),
    ),
    "memory_errors": Cause(
        "device memory has errors that cannot be mended",
        "fault",
        (
            do(
                "drain the node, reset the device, replace it if they return",
                "no silent loss",
                "a spare",
            ),
        ),
    ),
    "link_errors": Cause(
        "transfers over PCIe have to be repeated",
        "fault",
        (
            do(
                "reseat the card or its riser, check the cable",
                "full bus rate",
                "an hour",
                0.0,
                0.3,
            ),
        ),
    ),
    "idle_allocated": Cause(
        "devices are held by jobs that do nothing with them",
        "waste",
        (
            do("ask the owners, then reclaim", "devices for others", "a message", 0.5, 1.0),
            do("stop idle sessions after a time", "it does not come back", "a policy", 0.5, 1.0),
        ),
        more_devices_help=False,
    ),
    "idle_free": Cause(
        "devices are free and nobody asks for them",
        "waste",
        (
            do(
                "give them back, or sell the hours", "no cost without use", "less reserve", 0.5, 1.0
            ),
            NOTHING,
        ),
        more_devices_help=False,
    ),
    "fragmented": Cause(
        "free devices are scattered: whole-node jobs wait beside them",
        "waste",
        (
            do(
                "pack small jobs onto few nodes",
                "whole nodes become free",
                "a scheduler setting",
                0.05,
                0.3,
            ),
            do(
                "move jobs that can be checkpointed", "whole nodes now", "a restart each", 0.05, 0.3
            ),
        ),
        more_devices_help=False,
    ),
    "share_candidate": Cause(
        "work that never needs a whole device",
        "waste",
        (
            do(
                "put it on a slice of a device",
                "several such jobs on one",
                "no burst beyond the slice",
                0.3,
                0.8,
            ),
            NOTHING,
        ),
        more_devices_help=False,
    ),
    "over_specified": Cause(
        "a smaller kind of device would do",
        "waste",
        (
            do("move it to a cheaper device", "the same work for less", "a test there", 0.3, 0.8),
            NOTHING,
        ),
        more_devices_help=False,
    ),
    "pool_quota": Cause(
        "some pools are full while the whole has room: quotas divide it",
        "waste",
        (
            do(
                "lend between pools, with a right to take back",
                "waiting jobs start",
                "a scheduler setting",
                0.05,
                0.3,
            ),
        ),
        more_devices_help=False,
    ),
    "dead_counter": Cause(
        "a counter stands at zero while the device draws power: the counter is dead",
        "fault",
        (
            do(
                "restart the exporter; free the counters from other profilers",
                "figures return",
                "a minute",
            ),
        ),
    ),
    "telemetry_outage": Cause(
        "all devices fall silent or to zero at once: monitoring failed, not the work",
        "fault",
        (do("leave the stretch out; look at the collector", "true means", "little"),),
    ),
    # ── utilization alone ────────────────────────────────────────────────────────────────────────
    "uneven_load": Cause(
        "the mean hides the peaks: idle in the valleys, full at the peak",
        "note",
        (
            do(
                "move work that can wait into the valleys",
                "lower peaks on the same devices",
                "a scheduler with priorities",
                0.1,
                0.5,
            ),
            do("follow the load with the number of replicas", "pay for peaks only", "cold starts"),
            do("size for the peak", "the peak is served in time", "idle valleys"),
        ),
    ),
    "under_used": Cause(
        "much of the paid time nothing runs",
        "waste",
        (
            do("consolidate onto fewer devices", "the same work for less", "headroom", 0.1, 0.7),
            do(
                "MIG slices, MPS or time-slicing", "several jobs on one", "less isolation", 0.1, 0.7
            ),
            do("spot or on-demand for what may stop", "pay for hours of work", "interruptions"),
            do("a smaller GPU, or a CPU for small models", "a lower price", "a test of speed"),
            NOTHING,
        ),
        more_devices_help=False,
    ),
    "hot": Cause(
        "close to full: bursts have little room",
        "note",
        (
            do(
                "watch latency and the queue before adding devices",
                "tells whether it is load",
                "none",
            ),
            do("move work that can wait into calmer hours", "room at the peak", "a scheduler"),
        ),
    ),
    "flapping": Cause(
        "the level crosses an edge again and again: one state, not many alarms",
        "note",
        (do("alert with hysteresis and a minimum duration", "one alarm", "an alert rule"),),
    ),
    "not_enough_to_judge": Cause(
        "a percentage alone is not enough to judge",
        "note",
        (
            do(
                "add latency (TTFT, TPOT or step time)",
                "tells whether targets are met",
                "an exporter",
            ),
            do("add throughput and the queue", "tells whether demand is met", "an exporter"),
            do("add SM and tensor activity, and power", "tells work from waiting", "an exporter"),
        ),
    ),
    "full_by_name": Cause(
        "busy all the time by the only counter there is, which cannot tell work from waiting",
        "note",
        (
            do(
                "turn on profiling counters (processors, tensor units, memory, links)",
                "tells whether more devices or better code would help",
                "an exporter setting",
            ),
            do("hold power against the board's", "a full device draws its power", "nothing"),
        ),
    ),
    "missing_devices": Cause(
        "a node reports fewer devices than its neighbours",
        "fault",
        (do("look for it on the bus", "a device fell off, or is passed to a guest", "time"),),
    ),
    "healthy": Cause("nothing stands out", "fine", (NOTHING,)),
}
