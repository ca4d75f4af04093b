"""Causes in serving: queue, cache, slots, starts."""

from gpuplan.diagnose.causes.cause import NOTHING, Cause, do

SERVING: dict[str, Cause] = {
    "overload": Cause(
        "more requests arrive than the fleet can answer",
        "slow",
        (
            do(
                "add replicas",
                "the queue drains once arrivals are below capacity",
                "their price; a cold start each",
                0.2,
                1.0,
            ),
            do(
                "admit fewer requests at once",
                "those admitted are fast, the others are told early",
                "refused requests",
            ),
            do(
                "a smaller precision or model",
                "more tokens per second from the same devices",
                "quality: yours to judge",
                0.2,
                0.9,
            ),
        ),
        more_devices_help=True,
    ),
    "kv_thrash": Cause(
        "the key-value cache is full: sequences are thrown out and computed again",
        "slow",
        (
            do(
                "cap concurrency below the cache's size",
                "throughput returns to its peak before the cliff",
                "a queue in front",
                0.3,
                1.1,
            ),
            do(
                "more cache: 8-bit cache, more memory for it, a wider tensor-parallel group",
                "more sequences fit",
                "quality check, or devices",
                0.2,
                1.0,
            ),
            do(
                "add replicas",
                "fewer sequences for each cache",
                "their price; a cold start each",
                0.5,
                1.5,
            ),
        ),
        more_devices_help=True,
    ),
    "prefix_cache_lost": Cause(
        "prefixes are evicted before they are used again",
        "slow",
        (
            do(
                "route conversations to the replica that holds their prefix",
                "hits return without more memory",
                "a router with affinity",
                0.1,
                0.8,
            ),
            do(
                "offload the cache to host memory",
                "evicted blocks come back over PCIe",
                "host memory",
                0.1,
                0.5,
            ),
        ),
    ),
    "slot_limited": Cause(
        "requests wait for a slot while cache and device have room",
        "slow",
        (
            do(
                "raise the limit of sequences (max_num_seqs)",
                "the batch grows until cache or speed bind",
                "a restart",
                0.1,
                0.8,
            ),
            do("add replicas", "more slots", "their price, for devices that are not full"),
        ),
        more_devices_help=False,
    ),
    "start_burst": Cause(
        "a burst at the start queued up and drained by itself",
        "note",
        (do("ramp up clients, or keep a warm spare", "no queue at the start", "little"),),
    ),
    "prefill_interference": Cause(
        "long prompts hold up the tokens of running answers",
        "slow",
        (
            do(
                "smaller chunks of prompts for each iteration",
                "shorter gaps between tokens",
                "a later first token",
                0.1,
                0.5,
            ),
            do(
                "prefill and decode on separate devices",
                "steady gaps",
                "a second pool and KV transfer",
                0.1,
                0.4,
            ),
        ),
    ),
    "cold_start_storm": Cause(
        "replicas come and go: much of the time goes into starting",
        "slow",
        (
            do(
                "longer cooldown and a higher minimum of replicas",
                "fewer starts",
                "some idle replicas",
                0.05,
                0.3,
            ),
            do("weights on local disks, compiled graphs kept", "shorter starts", "disk", 0.05, 0.2),
        ),
    ),
    "replica_imbalance": Cause(
        "some replicas are full while others idle",
        "slow",
        (
            do(
                "route by outstanding requests, not by turns",
                "queues level out",
                "a setting of the router",
                0.1,
                0.5,
            ),
            NOTHING,
        ),
        more_devices_help=False,
    ),
    "request_errors": Cause(
        "a notable share of requests fails",
        "fault",
        (do("read the engine's errors", "lost work returns", "time", 0.01, 0.2),),
    ),
    "low_demand": Cause(
        "fewer requests than the engine could answer",
        "waste",
        (
            do(
                "fewer or smaller replicas, or a share of a device",
                "the same answers for less",
                "less headroom",
                0.2,
                0.8,
            ),
            do(
                "put batch work into the valleys",
                "paid time is used",
                "a scheduler with priorities",
                0.1,
                0.5,
            ),
            NOTHING,
        ),
        more_devices_help=False,
    ),
}
