"""Manifests: valid for Kubernetes, and with the plan's own numbers."""

from dataclasses import replace

import kubernetes_validate
import pytest
import yaml

from fakes.deployed import (
    deployed,
    deployed_pool,
    node,
    run_pool,
    served_model,
    spread_pool,
)
from gpuplan.domain.plan.candidate import PoolLayout, RunSteps
from gpuplan.render.kubernetes.capacity import (
    karpenter_files,
    keda_files,
    kserve_files,
    kueue_files,
)
from gpuplan.render.kubernetes.devices import (
    n_slices,
    resource_of,
    resources_of,
    selector_of,
)
from gpuplan.render.kubernetes.serving import kubernetes_files

CORE = ("Deployment", "Service", "PodDisruptionBudget", "HorizontalPodAutoscaler")
WIDE = PoolLayout(tp=8, pp=2, n_servers_per_replica=2)
RANKS = PoolLayout(tp=1, pp=1, dp=16, ep=16, n_servers_per_replica=2)


def documents(files):
    return [each for file in files for each in yaml.safe_load_all(file.content)]


def by_kind(files):
    return {each["kind"]: each for each in documents(files)}


def container(workload):
    return workload["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize("dra", [False, True])
@pytest.mark.parametrize("card", ["h100-sxm", "mi300x", "l4", "gaudi3"])
def test_manifests_pass_the_published_schemas(card, dra):
    whole = deployed(deployed_pool(card, n_replicas_least=1))
    found = documents(kubernetes_files(whole, dra=dra))
    assert {each["kind"] for each in found} >= set(CORE)
    for each in found:
        kubernetes_validate.validate(each, "1.34", strict=True)


def test_replicas_and_accelerators_are_the_plans():
    found = by_kind(kubernetes_files(deployed(deployed_pool())))
    assert found["Deployment"]["spec"]["replicas"] == 3
    limits = container(found["Deployment"])["resources"]["limits"]
    assert limits["nvidia.com/gpu"] == "2"
    assert found["PodDisruptionBudget"]["spec"]["minAvailable"] == 2


def test_without_spares_one_replica_may_still_be_drained():
    one = deployed_pool()
    bare = replace(one, pool=replace(one.pool, n_spare_replicas=0))
    budget = by_kind(kubernetes_files(deployed(bare)))["PodDisruptionBudget"]
    assert budget["spec"]["maxUnavailable"] == 1


def test_a_start_is_given_twice_the_time_that_is_predicted():
    found = by_kind(kubernetes_files(deployed(deployed_pool())))
    probe = container(found["Deployment"])["startupProbe"]
    assert probe["failureThreshold"] * probe["periodSeconds"] == 400


def test_autoscaling_runs_between_the_quietest_hour_and_the_peak():
    scaler = by_kind(kubernetes_files(deployed(deployed_pool(n_replicas_least=1))))
    spec = scaler["HorizontalPodAutoscaler"]["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 3)
    assert spec["metrics"][0]["pods"]["target"]["averageValue"] == "16"


def test_a_steady_load_needs_no_autoscaler():
    assert "HorizontalPodAutoscaler" not in by_kind(kubernetes_files(deployed(deployed_pool())))


@pytest.mark.parametrize(
    ("share", "resource"),
    [
        ("", "nvidia.com/gpu"),
        ("3g.40gb", "nvidia.com/mig-3g.40gb"),
        ("1/4", "nvidia.com/gpu.shared"),
    ],
)
def test_a_share_of_a_card_is_asked_for_by_name(share, resource):
    assert resource_of(spread_pool(PoolLayout(tp=1, pp=1, share=share))) == resource


def sliced(share, **shape):
    where = {"n_accelerators": 8, "n_vcpu": 112, "ram_bytes": 2000e9, **shape}
    one = spread_pool(PoolLayout(tp=1, pp=1, share=share), node=node(**where))
    return replace(one, pool=replace(one.pool, n_replicas=56))


@pytest.mark.parametrize(
    ("share", "n"), [("1g.10gb", 7), ("1g.20gb", 4), ("2g.20gb", 3), ("3g.40gb", 2), ("1/4", 4)]
)
def test_all_replicas_of_a_shared_card_fit_the_node(share, n):
    """As many pods as there are slices have room in the node's CPUs and memory."""
    amounts = resources_of(sliced(share))["requests"]
    assert n_slices(sliced(share)) == n
    assert 8 * n * int(amounts["cpu"]) <= 112
    assert 8 * n * int(amounts["memory"].removesuffix("Gi")) * 2**30 <= 2000e9


def test_a_mig_slice_says_how_its_nodes_are_cut():
    (file,) = kubernetes_files(deployed(sliced("1g.10gb")))
    text = " ".join(file.content.decode().replace("#", "").split())
    assert "nvidia.com/mig.config=all-1g.10gb" in text
    assert "mig.strategy=mixed" in text
    (container,) = next(yaml.safe_load_all(file.content))["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"]["nvidia.com/mig-1g.10gb"] == "1"


def test_gke_tells_shared_cards_by_labels_of_the_node():
    for share, labels in (
        ("1g.10gb", {"cloud.google.com/gke-gpu-partition-size": "1g.10gb"}),
        (
            "1/4",
            {
                "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
                "cloud.google.com/gke-max-shared-clients-per-gpu": "4",
            },
        ),
    ):
        one = sliced(share, cloud="gcp", name="a3-highgpu-8g")
        assert resource_of(one) == "nvidia.com/gpu"
        machine = {"node.kubernetes.io/instance-type": "a3-highgpu-8g"}
        assert selector_of(one) == machine | labels


@pytest.mark.parametrize(
    ("card", "resource"),
    [("mi300x", "amd.com/gpu"), ("gaudi3", "habana.ai/gaudi"), ("tpu-v5e", "google.com/tpu"),
     ("trainium2", "aws.amazon.com/neuron"), ("pvc-1550", "gpu.intel.com/xe")],
)  # fmt: skip
def test_every_vendor_has_its_resource(card, resource):
    assert resource_of(deployed_pool(card)) == resource


def test_a_pod_takes_its_part_of_the_node():
    one = deployed_pool(node=node(n_accelerators=4, n_vcpu=64, ram_bytes=2.0**30 * 512))
    requests = resources_of(one)["requests"]
    assert requests["cpu"] == str(int(64 * 0.9 / 2))
    assert requests["memory"] == f"{int(512 * 0.9 / 2)}Gi"


def test_rented_machines_are_found_by_their_name():
    aws = deployed_pool(node=node(cloud="aws", name="p5.48xlarge"))
    assert selector_of(aws) == {"node.kubernetes.io/instance-type": "p5.48xlarge"}
    assert selector_of(deployed_pool()) == {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}


def test_a_mig_profile_is_claimed_by_its_name():
    one = spread_pool(PoolLayout(tp=1, pp=1, share="3g.40gb"))
    claim = by_kind(kubernetes_files(deployed(one), dra=True))["ResourceClaimTemplate"]
    request = claim["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    assert request["deviceClassName"] == "mig.nvidia.com"
    assert "profile == '3g.40gb'" in request["selectors"][0]["cel"]["expression"]


def wide(layout, **changes):
    return by_kind(kubernetes_files(deployed(spread_pool(layout, **changes))))["LeaderWorkerSet"]


def test_a_wide_replica_is_a_group_of_pods():
    spec = wide(WIDE)["spec"]
    template = spec["leaderWorkerTemplate"]
    assert (spec["replicas"], template["size"]) == (3, 2)
    leader = template["leaderTemplate"]["spec"]["containers"][0]
    worker = template["workerTemplate"]["spec"]["containers"][0]
    assert "ray start --head" in leader["command"][2]
    wait, _, join = worker["command"][2].partition("done; ")
    assert wait.startswith("until ray health-check --address $(LWS_LEADER_ADDRESS):6379;")
    assert join == "exec ray start --address=$(LWS_LEADER_ADDRESS):6379 --block"
    assert leader["resources"]["limits"]["nvidia.com/gpu"] == "8"
    assert "readinessProbe" not in worker


def test_ranks_of_data_parallelism_are_dealt_out_over_servers():
    template = wide(RANKS)["spec"]["leaderWorkerTemplate"]
    leader = template["leaderTemplate"]["spec"]["containers"][0]["command"]
    worker = template["workerTemplate"]["spec"]["containers"][0]["command"][2]
    assert leader[leader.index("--data-parallel-size-local") + 1] == "8"
    assert "--headless" in worker
    assert "LWS_WORKER_INDEX * 8" in worker


def test_sglang_joins_by_rank():
    template = wide(WIDE, served=served_model("sglang", "0.5.9"))["spec"]["leaderWorkerTemplate"]
    command = template["workerTemplate"]["spec"]["containers"][0]["command"]
    assert command[command.index("--nnodes") + 1] == "2"
    assert command[command.index("--node-rank") + 1] == "$(LWS_WORKER_INDEX)"


def test_a_run_is_one_pod_a_server():
    layout = PoolLayout(tp=2, pp=1, dp=8, sharding="zero1", n_servers_per_replica=2)
    (job,) = documents(kubernetes_files(deployed(run_pool(layout, RunSteps(micro_batch=1)))))
    assert job["kind"] == "JobSet"
    inner = job["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert (inner["parallelism"], inner["completions"]) == (2, 2)
    pod = inner["template"]["spec"]["containers"][0]
    assert pod["resources"]["limits"]["nvidia.com/gpu"] == "8"
    assert "pretrain-node-0-0.pretrain" in pod["command"][2]


def test_quotas_are_the_plans_accelerators():
    found = documents(kueue_files(deployed(deployed_pool())))
    kinds = [each["kind"] for each in found]
    assert kinds == ["ResourceFlavor", "ClusterQueue", "LocalQueue"]
    quota = found[1]["spec"]["resourceGroups"][0]["flavors"][0]
    assert quota["name"] == found[0]["metadata"]["name"]
    assert quota["resources"] == [{"name": "nvidia.com/gpu", "nominalQuota": 6}]


def test_keda_scales_by_requests_in_flight():
    (found,) = documents(keda_files(deployed(deployed_pool(n_replicas_least=1))))
    assert found["spec"]["minReplicaCount"] == 1
    trigger = found["spec"]["triggers"][0]["metadata"]
    assert trigger["threshold"] == "16"
    assert "vllm:num_requests_running" in trigger["query"]


def test_an_engine_that_does_not_tell_is_not_scaled():
    assert not list(keda_files(deployed(deployed_pool(served=served_model("trtllm", "1.1.0")))))


def test_karpenter_starts_the_planned_machine_and_no_more():
    rented = deployed_pool(node=node(cloud="aws", name="p5.48xlarge", n_accelerators=8))
    (found,) = documents(karpenter_files(deployed(rented, deployed_pool(name="own"))))
    assert found["spec"]["limits"] == {"nvidia.com/gpu": 24}
    asked = found["spec"]["template"]["spec"]["requirements"]
    assert asked[0]["values"] == ["p5.48xlarge"]


def test_kserve_serves_between_the_plans_bounds():
    (found,) = documents(kserve_files(deployed(deployed_pool(n_replicas_least=2))))
    predictor = found["spec"]["predictor"]
    assert (predictor["minReplicas"], predictor["maxReplicas"]) == (2, 3)
    assert predictor["scaleTarget"] == 16
    assert not list(kserve_files(deployed(spread_pool(WIDE))))
