"""Rows of a training table become configurations; blanks are filled as the software would."""

import pytest

from gpuplan.calibration.training.rows import TrainingRow
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.errors import CatalogError, InputError
from gpuplan.performance.training.basis import WIDER, peak_flop_per_s
from gpuplan.studies.measured.names import accelerator_of
from gpuplan.studies.measured.training import (
    configuration_of,
    fabric_of,
)
from gpuplan.studies.training.cases import case_of, cases_of


def configured(**fields):
    base = {"id": "x", "source": "dgxc", "framework": "NeMo", "accelerator": "H100"}
    return configuration_of(TrainingRow(base | fields), read_catalog())


def test_degrees_give_the_data_parallel_rest():
    found = configured(
        model="Llama 3.1 70b", n_accelerators="128", tp="4", pp="8", vp="5", seq_len="8192",
        global_batch="256", micro_batch="1", precision="FP8",
    )  # fmt: skip
    assert (found.layout.dp, found.setup.n_micro_batches, found.layout.n_virtual) == (4, 64, 5)
    assert found.setup.execution.compute == "fp8"
    assert found.layout.has_sequence_parallel


def test_more_ranks_than_samples_share_sequences():
    found = configured(
        model="Llama-2-70B", n_accelerators="64", tp="1", pp="1", seq_len="8192",
        global_batch="8", micro_batch="1", task="LoRA", framework="MLPerf v5.0",
    )  # fmt: skip
    assert (found.layout.dp, found.layout.cp) == (8, 8)
    assert found.setup.adapter is not None


def test_a_cut_copy_has_fewer_layers_but_experts_keep_theirs():
    cut = configured(model="Llama 3.1 405b", n_layers="30", n_accelerators="64", tp="8", pp="4")
    assert cut.model.main.n_layers == 30
    kept = configured(model="LLAMA4 Maverick 400b", n_layers="32", n_accelerators="64")
    assert kept.model.main.n_layers == 48
    assert "n_layers" in {told.what for told in kept.assumptions}


def test_blank_recompute_is_full_only_before_flash_attention():
    old = configured(
        model="GPT-3 175B", n_accelerators="64", framework="Megatron-LM", date="2021-01",
        source="x", tp="8", pp="8", seq_len="2048", global_batch="64",
    )  # fmt: skip
    new = configured(model="GPT-3 175B", n_accelerators="64", tp="8", pp="8", seq_len="2048")
    assert (old.setup.execution.recompute, new.setup.execution.recompute) == ("full", "none")
    assert (old.setup.execution.attention, new.setup.execution.attention) == ("math", "flash")


def test_block_scaled_formats_are_distinguished():
    plain = configured(model="Llama 3.1 8b", n_accelerators="8", precision="FP8-CS")
    scaled = configured(model="Llama 3.1 8b", n_accelerators="8", precision="MXFP8")
    four = configured(model="Llama 3.1 8b", n_accelerators="8", precision="NVFP4")
    computed = [found.setup.execution.compute for found in (plain, scaled, four)]
    assert computed == ["fp8", "mxfp8", "fp4"]


def test_unknown_model_is_refused_with_its_reason_and_no_row_is_lost():
    rows = [
        TrainingRow({"id": "a", "model": "no such network", "accelerator": "H100"}),
        TrainingRow(
            {"id": "b", "model": "Llama-2-7B", "accelerator": "H100", "n_accelerators": "8"}
        ),
        TrainingRow({"id": "c", "accelerator": "H100"}),
    ]
    cases, refused = cases_of(rows, read_catalog())
    assert len(cases) + len(refused) == len(rows)
    assert "no such network" in refused[0][1]
    with pytest.raises(InputError):
        case_of(rows[2], read_catalog())


def test_stated_bandwidth_replaces_the_sheet():
    found = configured(
        model="Llama-3.1-8B", n_accelerators="8",
        accelerator="H100 96GB HBM2e 2.4TB/s, 500W limit, 8/host NVLink, 400Gb/s RDMA per GPU",
    )  # fmt: skip
    assert found.accelerator.memory.bytes_per_s == 2.4e12


def test_rack_scale_domains_hold_seventy_two():
    gb200 = find_accelerator("GB200", read_catalog()).accelerator
    assert (fabric_of(gb200).n_domain, fabric_of(gb200).n_node) == (72, 4)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NVIDIA Blackwell Ultra GPU (B300-SXM-270GB)", "b300-sxm"),
        ("NVIDIA Blackwell Ultra GPU (GB300)", "gb300"),
        ("NVIDIA Blackwell GPU (B200-SXM-180GB)", "b200-sxm"),
        ("AMD Instinct MI300X 192GB HBM3", "mi300x"),
    ],
)
def test_names_with_the_part_in_brackets(text, expected):
    assert accelerator_of(text, read_catalog()).id == expected


def test_hybrid_sharding_stays_inside_a_node():
    common = {"framework": "torchtitan", "model": "Llama-2-7B", "n_accelerators": "128",
              "seq_len": "4096", "global_batch": "256", "micro_batch": "2"}  # fmt: skip
    hybrid, whole = configured(sharding="hsdp", **common), configured(sharding="fsdp", **common)
    assert (hybrid.layout.sharding, hybrid.layout.n_shards) == ("zero3", 8)
    assert whole.layout.n_shards == 128


def test_adapters_on_all_matrices_where_the_table_says_so():
    common = {"framework": "peft", "model": "Llama-2-7B", "n_accelerators": "1", "task": "lora",
              "seq_len": "1024", "global_batch": "8", "micro_batch": "1"}  # fmt: skip
    few, all_of_them = configured(**common), configured(lora_targets="all", **common)
    assert set(few.setup.adapter.targets) < set(all_of_them.setup.adapter.targets)


JOB = {
    "framework": "NeMo", "model": "Llama-3.1-70B", "n_accelerators": "64", "precision": "bf16",
    "seq_len": "8192", "global_batch": "128", "micro_batch": "1", "tp": "4", "pp": "4",
}  # fmt: skip
SPARSE = {"model": "Qwen3-30B-A3B", "tp": "1", "pp": "1", "n_accelerators": "24"}


@pytest.mark.parametrize(
    ("changed", "n_problems"),
    [
        ({"seq_len": "0"}, 1),
        ({"seq_len": "-5", "n_accelerators": "0", "micro_batch": "-1"}, 3),
        ({"pp": "100", "n_accelerators": "400"}, 1),
        ({"tp": "128", "n_accelerators": "512"}, 1),
        ({**SPARSE, "ep": "256"}, 1),
    ],
)
def test_impossible_counts_are_refused_all_at_once(changed, n_problems):
    with pytest.raises(InputError) as caught:
        configured(**(JOB | changed))
    assert len(caught.value.problems) == n_problems


@pytest.mark.parametrize(
    ("changed", "assumed"),
    [
        ({"n_accelerators": "60"}, "n_accelerators"),
        ({"tp": "3", "n_accelerators": "60"}, "tp"),
        ({**SPARSE, "ep": "3"}, "ep"),
        ({"precision": "int8"}, "precision"),
        ({"precision": ""}, "precision"),
    ],
)
def test_what_does_not_divide_or_is_not_stated_is_assumed(changed, assumed):
    assert assumed in [found.what for found in configured(**(JOB | changed)).assumptions]


def test_a_plain_job_needs_no_assumption_of_these():
    assert not {"n_accelerators", "tp", "ep", "precision"} & {
        found.what for found in configured(**JOB).assumptions
    }


@pytest.mark.parametrize("name", sorted(read_catalog().accelerators))
@pytest.mark.parametrize("compute", WIDER)
def test_every_board_has_a_peak_or_says_what_it_can_do(name, compute):
    board = read_catalog().accelerators[name]
    peaks = board.peak_flop_per_s
    if compute in ("tf32", "fp32") and not {"tf32", "fp32"} & set(peaks):
        with pytest.raises(CatalogError, match="use one of"):
            peak_flop_per_s(board, compute)
        return
    peak = peak_flop_per_s(board, compute)
    assert peak == peaks.get(compute, peak)  # never another format's
    assert peak <= max(peaks.values())


def test_defaults_of_the_compiler_are_those_of_its_software():
    common = {"framework": "MaxText", "model": "Llama-3.1-8B", "accelerator": "TPU v6e",
              "n_accelerators": "256", "seq_len": "8192", "global_batch": "1024"}  # fmt: skip
    found = configured(**common)
    assert found.setup.execution.recompute == "full"
    assert (found.setup.micro_batch, found.setup.n_micro_batches) == (4, 1)
    assert configured(**common, recompute="none").setup.execution.recompute == "none"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Full", "full"), ("yes", "full"), ("True", "full"), ("gradient checkpointing", "full"),
        ("on", "full"), ("no", "none"), ("False", "none"), ("no checkpointing", "none"),
        ("selective layer", "selective"),
    ],
)  # fmt: skip
def test_recompute_is_understood_as_people_write_it(text: str, expected: str):
    assert configured(**JOB, recompute=text).setup.execution.recompute == expected


@pytest.mark.parametrize(
    ("release", "precision", "expected"),
    [
        ("26.02.01", "MXFP8", "fused"),
        ("26.06", "MXFP8", "grouped"),
        ("26.08", "NVFP4", "grouped"),
        ("26.08", "FP8", "fused"),
        ("27.01", "MXFP8", "grouped"),
    ],
)
def test_later_releases_fuse_experts_in_narrow_formats(release, precision, expected):
    changed = {"ep": "8", "accelerator": "GB200", "precision": precision}
    changed["framework"] = f"Megatron-Bridge {release}"
    found = configured(**(JOB | SPARSE | changed))
    assert found.setup.execution.kernels == expected
    assert found.labels["kernels"] == "fused"
    assert (found.stack.host_ratio < 1) == (expected == "grouped")
