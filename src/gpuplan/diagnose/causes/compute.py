"""Causes in the work itself: feeding, kernels, precision, exchange."""

from gpuplan.diagnose.causes.cause import NOTHING, Cause, do

COMPUTE: dict[str, Cause] = {
    "storage_bound": Cause(
        "devices wait for data that storage cannot deliver",
        "slow",
        (
            do(
                "local disks with the data in large shards",
                "reads in sequence at full rate",
                "disks and a copy",
                0.2,
                5.0,
            ),
            do(
                "cache what is read again", "later epochs come from memory", "host memory", 0.1, 2.0
            ),
        ),
        more_devices_help=False,
    ),
    "host_bound": Cause(
        "devices wait for the processor to prepare data",
        "slow",
        (
            do(
                "decode and augment on the accelerator",
                "the host is out of the way",
                "a loader that can",
                0.2,
                2.0,
            ),
            do(
                "more loader workers, or nodes with more cores",
                "more samples a second",
                "cores",
                0.1,
                1.0,
            ),
        ),
        more_devices_help=False,
    ),
    "input_bound": Cause(
        "devices stop and go: something before them is too slow",
        "slow",
        (
            do(
                "measure storage, network and host beside the devices",
                "the slow stage is named",
                "exporters",
            ),
            do(
                "prefetch more batches, pin memory, overlap the copy",
                "fewer gaps",
                "host memory",
                0.05,
                0.5,
            ),
        ),
        more_devices_help=False,
    ),
    "pcie_bound": Cause(
        "the copy between host and device is the bottleneck",
        "slow",
        (
            do(
                "pinned memory, overlapped copies, smaller types on the wire",
                "less time on the bus",
                "code",
                0.1,
                1.0,
            ),
            do("keep the data on the device", "no copy at all", "device memory", 0.1, 2.0),
        ),
        more_devices_help=False,
    ),
    "small_kernels": Cause(
        "many small kernels: the device is occupied, not working",
        "slow",
        (
            do(
                "compile or capture graphs, fuse operators",
                "fewer launches, fuller kernels",
                "code",
                0.3,
                3.0,
            ),
            do("larger batches", "more work for each launch", "memory; convergence", 0.2, 2.0),
            do(
                "half precision on tensor units",
                "the fast units are used",
                "check accuracy",
                0.3,
                3.0,
            ),
        ),
        more_devices_help=False,
    ),
    "wrong_precision": Cause(
        "arithmetic runs beside the tensor units",
        "slow",
        (do("bf16 or tf32 matrix products", "tensor units take over", "check accuracy", 1.0, 6.0),),
        more_devices_help=False,
    ),
    "network_bound": Cause(
        "devices wait for the network between them",
        "slow",
        (
            do(
                "fewer bytes: larger accumulation, sharding within a node, compressed gradients",
                "less traffic for each step",
                "code",
                0.2,
                2.0,
            ),
            do(
                "faster or more network ports for each node",
                "shorter exchanges",
                "hardware",
                0.2,
                3.0,
            ),
            do("overlap exchange with compute", "waiting is hidden", "code", 0.1, 0.5),
        ),
        more_devices_help=False,
    ),
    "nic_bound": Cause(
        "NICs of a node run at their line rate",
        "slow",
        (
            do(
                "faster or more NICs, or storage traffic on a network of its own",
                "data arrives when it is needed",
                "hardware",
                0.1,
                2.0,
            ),
            do(
                "cache data on local NVMe, larger files, compressed transfers",
                "fewer bytes through the NICs",
                "code",
                0.1,
                1.0,
            ),
        ),
        more_devices_help=False,
    ),
    "packet_loss": Cause(
        "connections send many segments again",
        "slow",
        (
            do(
                "check cables, optics, MTU, switch drops and PFC/ECN settings",
                "connections run at the rate of their NICs",
                "time",
                0.05,
                1.0,
            ),
        ),
        more_devices_help=False,
    ),
    "communication_heavy": Cause(
        "much of the step goes into exchange between devices",
        "slow",
        (
            do(
                "narrower tensor parallelism, fewer pipeline stages",
                "fewer exchanges",
                "memory on each device",
                0.1,
                1.0,
            ),
            do("overlap exchange with compute", "waiting is hidden", "code", 0.05, 0.5),
            NOTHING,
        ),
        more_devices_help=False,
    ),
    "kernels_or_exchange": Cause(
        "occupied but not working: small kernels or waiting for others; link counters would tell",
        "slow",
        (
            do(
                "turn on link counters (NVLink, InfiniBand)",
                "tells which of the two it is",
                "an exporter setting",
            ),
            do("profile one step", "tells which of the two it is", "minutes"),
        ),
        more_devices_help=False,
    ),
    "busy_in_name": Cause(
        "reported busy at hardly more than idle power: spinning, starting or stuck",
        "slow",
        (
            do("look again in a minute", "a start passes, a hang stays", "a minute"),
            do("find the rank that does not answer", "the others go on", "time", 0.1, 1.0),
        ),
        more_devices_help=False,
    ),
    "straggler": Cause(
        "one device holds up its group",
        "slow",
        (
            do(
                "replace or reset that device or node",
                "the group runs at its own pace",
                "a spare",
                0.05,
                0.5,
            ),
            do("check its clocks, links and neighbours on the host", "the reason", "time"),
        ),
        more_devices_help=False,
    ),
    "memory_bandwidth_bound": Cause(
        "device memory is the limit: right for decoding",
        "fine",
        (
            do(
                "larger batches while latency allows",
                "weights are read once for more tokens",
                "latency",
                0.1,
                1.0,
            ),
            do(
                "smaller formats of weights and cache",
                "fewer bytes for each token",
                "quality: yours to judge",
                0.2,
                0.9,
            ),
            NOTHING,
        ),
    ),
    "compute_bound": Cause(
        "tensor units are busy: a healthy, full device",
        "fine",
        (
            NOTHING,
            do(
                "smaller number formats",
                "more arithmetic a second",
                "quality: yours to judge",
                0.2,
                0.9,
            ),
        ),
        more_devices_help=True,
    ),
}
