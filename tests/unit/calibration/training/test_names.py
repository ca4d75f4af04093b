"""Training software, networks, models and constants by their names in tables."""

import pytest

from gpuplan.calibration.tables import priors
from gpuplan.calibration.training.constants import UNKNOWN_BEST_FRAC, best_fracs
from gpuplan.calibration.training.fabric import fabric_kind, names_kind, nic_bytes_per_s
from gpuplan.calibration.training.models import Dimensions, known_model, model_from
from gpuplan.calibration.training.stacks import stack_of
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.training.time import (
    HostConstants,
    LinkConstants,
    MatmulConstants,
    MixerConstants,
    TrafficConstants,
    WholeConstants,
)
from gpuplan.studies.measured.training import (
    architecture_class,
)

H100 = find_accelerator("H100", read_catalog()).accelerator


@pytest.mark.parametrize(
    ("framework", "source", "date", "note", "expected"),
    [
        ("Megatron-LM", "megatron:readme_jan2021", "2021-01-11", "", "megatron-2021"),
        ("Megatron-LM", "megascale", "2024-02", "", "megatron"),
        ("Megatron-DeepSpeed", "bloom-sweeps", "", "02-21", "megatron-deepspeed"),
        ("NeMo 24.07", "nemo-24.07", "2024-10-08", "", "megatron"),
        ("NeMo-Megatron (NeMo-Framework-Launcher)", "nemo launcher", "2022", "", "megatron-2021"),
        ("llm-foundry (FSDP)", "llm-foundry", "2024", "", "fsdp"),
        ("torchtitan", "torchtitan", "2024-12", "compile yes; async tp", "fsdp-compiled"),
        ("torchtitan", "torchtitan", "2024-04", "FSDP2 1D, no torch.compile stated", "fsdp"),
        ("MLPerf v5.0 AMD", "mlperf-training", "", "", "megatron"),
        ("MaxText", "maxtext", "2025", "", "xla"),
        ("litgpt", "litgpt", "2023", "", "finetune"),
        ("Megatron-DeepSpeed", "gaudi", "2024-12", "", "megatron"),
        ("Megatron-DeepSpeed", "somebody", "2021-06", "", "megatron-deepspeed"),
        ("NeMo AutoModel FSDP2", "automodel", "2025-10", "TE + DeepEP", "fsdp-fused"),
        ("something new", "nobody", "2026", "", "megatron"),
    ],
)
def test_software_is_recognized_by_name_and_year(framework, source, date, note, expected):
    assert stack_of(framework, source=source, date=date, note=note).name == expected


@pytest.mark.parametrize(
    ("stated", "expected", "is_stated"),
    [
        ("1600 Gbps node-node RoCE", 25e9, True),
        ("4 x 100Gb RoCE per node", 6.25e9, True),
        (
            "Storage: 2x CX-7 IB 400Gb/s, Compute: 8x ConnectX-7 IB NDR 400Gb/s",
            50e9,
            True,
        ),
        ("H100-SXM5-80GB 400Gb/s RDMA per GPU", 50e9, True),
        ("8x something NVIDIA H100-SXM5-80GB", 50e9, False),  # memory is no network
        ("10G Ethernet", 50e9, False),
    ],
)
def test_nics_are_read_as_bits_per_second(stated, expected, is_stated):
    assert nic_bytes_per_s(stated, H100, n_node=8) == (pytest.approx(expected), is_stated)


def test_models_of_papers_have_their_published_size():
    assert known_model("Nemotron4 340b").n_params == pytest.approx(341e9, rel=0.01)
    assert known_model("nemotron-4 15B").n_params == pytest.approx(15.6e9, rel=0.02)
    grok = known_model("Grok1 314b")
    assert grok.n_params == pytest.approx(314e9, rel=0.02)
    assert architecture_class(grok) == "moe"
    assert known_model("nobody knows") is None


def test_dimensions_alone_give_a_model_with_its_assumptions():
    found = model_from("gpt", Dimensions(n_layers=96, hidden=12288), source="test")
    assert found.n_params == pytest.approx(174.6e9, rel=0.01)
    assert {told.what for told in found.assumptions} == {"heads", "vocab"}


def test_every_constant_has_a_prior():
    groups = (
        MatmulConstants, MixerConstants, TrafficConstants, HostConstants, LinkConstants,
        WholeConstants,
    )  # fmt: skip
    needed = {name for group in groups for name in group._fields}
    best = {"best16_frac", "best8_frac", "best4_frac"}
    assert {constant.name for constant in priors("training")} == needed - best - {"imbalance_ratio"}


def test_unmeasured_accelerators_get_the_middle():
    a100 = find_accelerator("A100", read_catalog()).accelerator
    assert best_fracs(a100)[0] == 0.869
    gb = find_accelerator("GB200", read_catalog()).accelerator
    assert best_fracs(gb)[0] == 0.729
    assert best_fracs(find_accelerator("T4", read_catalog()).accelerator) == UNKNOWN_BEST_FRAC


@pytest.mark.parametrize(
    ("text", "gbit_per_accelerator"),
    [
        ("400 Gb/s per GPU", 400),
        ("400 Gbit/s per accelerator", 400),
        ("3,200 Gbps EFA per node", 400),
        ("100 Gbit/s TCP per server", 12.5),
        ("50 GB/s per GPU", 400),
        ("2x 25 GbE RoCE per node", 6.25),
        ("8 × 400 Gb/s InfiniBand per node", 400),
    ],
)
def test_networks_as_people_write_them(text, gbit_per_accelerator):
    rate, is_stated = nic_bytes_per_s(text, H100, n_node=8)
    assert is_stated
    assert rate * 8 / 1e9 == pytest.approx(gbit_per_accelerator)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("EFA", "efa"), ("100 GbE TCP", "tcp"), ("RoCE v2", "roce"), ("400 Gb/s", "infiniband")],
)
def test_kinds_of_networks(text, kind):
    assert fabric_kind(text) == kind
    assert names_kind(text) == (kind != "infiniband")
