"""Names as people type them and as tools print them."""

import csv

import pytest

from gpuplan.catalog.families import FAMILIES
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.names import find_accelerator
from gpuplan.domain.hardware.catalog import AcceleratorChoice
from gpuplan.errors import InputError
from shared_data import shared_file

CATALOG = read_catalog()


def found(text: str) -> AcceleratorChoice:
    return find_accelerator(text, CATALOG)


def test_what_is_announced_says_so_wherever_it_is_named() -> None:
    for text in ("rubin", "Vera Rubin NVL72", "8x VR200", "MI400"):
        assert any(note.value == "announced" for note in found(text).assumptions), text
    assert not any(note.value == "announced" for note in found("GB300").assumptions)


def test_sources_of_street_prices_are_those_of_the_facts() -> None:
    assert CATALOG.street_price("h200-nvl").source == "reseller-survey-2026"
    assert CATALOG.street_price("h100-pcie").source == "street-prices"
    assert CATALOG.street_price("tpu-v7") is None


def test_a_server_is_sold_as_one_and_boards_stand_in_where_none_is():
    server, board = CATALOG.node_price("h100-sxm", 8), CATALOG.node_price("h100-sxm", 4)
    assert server.is_server
    assert server.usd.mid == 285_000
    assert not board.is_server
    assert board.usd == CATALOG.street_price("h100-sxm").usd
    assert CATALOG.node_price("tpu-v7", 4) is None


PLAIN = {
    "h100-sxm": "h100-sxm",
    "H100 SXM5 80GB": "h100-sxm",
    "H100SXM": "h100-sxm",
    "HGX H100": "h100-sxm",
    "nvidia-h100-80gb-hbm3": "h100-sxm",
    "NVIDIA H100 PCIe": "h100-pcie",
    "NVIDIA H100 NVL": "h100-nvl",
    "H100 94GB": "h100-nvl",
    "NVIDIA A100-SXM4-80GB": "a100-sxm-80gb",
    "NVIDIA A100 80GB PCIe": "a100-pcie-80gb",
    "NVIDIA A100-PCIE-40GB": "a100-pcie-40gb",
    "NVIDIA L4": "l4",
    "L40": "l40",
    "l40s": "l40s",
    "NVIDIA A10G": "a10g",
    "NVIDIA A10": "a10",
    "Tesla T4": "t4",
    "Tesla V100-SXM2-32GB": "v100-sxm2-32gb",
    "NVIDIA GeForce RTX 4090": "rtx-4090",
    "RTX 5090": "rtx-5090",
    "NVIDIA RTX 6000 Ada Generation": "rtx-6000-ada",
    "6000 Ada": "rtx-6000-ada",
    "NVIDIA RTX A6000": "rtx-a6000",
    "a5000": "rtx-a5000",
    "RTX-A4000": "rtx-a4000",
    "3080": "rtx-3080",
    "4090": "rtx-4090",
    "H100 94": "h100-nvl",
    "NVIDIA GH200 Grace Hopper Superchip 144GB": "gh200-144gb",
    "NVIDIA A100-SXM-80C": "a100-sxm-80gb",  # all of the board, as vGPU names it
    "NVIDIA A10-PCI-24GB": "a10",
    "Virtualized NVIDIA L40S": "l40s",
    "M2 Ultra 76-Core GPU": "apple-m2-ultra",
    "Intel® Gaudi® 2 AI Accelerator": "gaudi2",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": "rtx-pro-6000-bw",
    "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": "rtx-pro-6000-ws",
    "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition": "rtx-pro-6000-maxq",
    "RTX PRO 6000 Max-Q": "rtx-pro-6000-maxq",
    "rtx_pro_6000_server": "rtx-pro-6000-bw",
    "H20": "h20",
    "h200 nvl": "h200-nvl",
    "GB200": "gb200",
    "GB300 NVL72": "gb300",
    "B200": "b200-sxm",
    "AMD Instinct MI300X": "mi300x",
    "AMD_Instinct_MI300X_VF": "mi300x",
    "mi-250x": "mi250x",
    "AMD Instinct MI355": "mi355x",
    "Gaudi 3": "gaudi3",
    "HL-325L": "gaudi3",
    "Intel Gaudi 2 HL-225H": "gaudi2",
    "TPU v5p": "tpu-v5p",
    "v5p": "tpu-v5p",
    "Trillium": "tpu-v6e",
    "TPU7x": "tpu-v7",
    "trn2": "trainium2",
    "Trainium 1": "trainium1",
    "inf2": "inferentia2",
    "EPYC 9654": "cpu-epyc-9654",
    "Xeon Platinum 8480+": "cpu-xeon-8480",
}
AMBIGUOUS = {
    "H100": ("h100-sxm", {"h100-pcie", "h100-nvl"}),
    "RTX PRO 6000 Blackwell": ("rtx-pro-6000-bw", {"rtx-pro-6000-ws", "rtx-pro-6000-maxq"}),
    "h100_80gb": ("h100-sxm", {"h100-pcie"}),
    "a100": ("a100-sxm-80gb", {"a100-pcie-80gb", "a100-sxm-40gb", "a100-pcie-40gb"}),
    "A100-80GB": ("a100-sxm-80gb", {"a100-pcie-80gb"}),
    "A100 40GB": ("a100-sxm-40gb", {"a100-pcie-40gb"}),
    "A100-SXM4-40GB/80GB": ("a100-sxm-80gb", {"a100-sxm-40gb"}),
    "A100 40GB or 80GB": ("a100-sxm-80gb", {"a100-sxm-40gb"}),
    "A100 PCIe": ("a100-pcie-80gb", {"a100-pcie-40gb"}),
    "V100": ("v100-sxm2-16gb", {"v100-sxm2-32gb", "v100-pcie-32gb"}),
    "H200": ("h200-sxm", {"h200-nvl"}),
    "GH200": ("gh200-96gb", {"gh200-144gb"}),
    "MI300": ("mi300x", {"mi300a"}),
    "cpu": ("cpu-xeon-8480", {"cpu-epyc-9654"}),
}
COUNTED = {
    "8xH100": ("h100-sxm", 8),
    "8 x H100": ("h100-sxm", 8),
    "8×H100-SXM": ("h100-sxm", 8),
    "8 H100": ("h100-sxm", 8),
    "H100x8": ("h100-sxm", 8),
    "H100:8": ("h100-sxm", 8),
    "H100 x 8": ("h100-sxm", 8),
    "MI300Xx8": ("mi300x", 8),
    "4x RTX 4090": ("rtx-4090", 4),
    "72xGB200": ("gb200", 72),
    "2x a100-pcie-40gb": ("a100-pcie-40gb", 2),
    "v5p-8": ("tpu-v5p", 4),  # names of v4 and v5p slices count cores
    "v4-32": ("tpu-v4", 16),
    "v5litepod-16": ("tpu-v5e", 16),  # names of v5e and v6e slices count chips
    "tpu-v6e-8": ("tpu-v6e", 8),
}
REFUSED = {
    "": "empty",
    "RTX6000": "quadro-rtx-6000",
    "H1O0": "h100-sxm",
    "h100-smx": "h100-sxm",
    "L40X": "l40",
    "H100 96GB": "no variant",
    "A100 SXM 64GB": "no variant",
    "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb": "MIG",
    "0xH100": "count of 0",
    "SambaNova SN40L": "no such accelerator",
    "Arc Pro B50": "no such accelerator",
    "x" * 1000: "too long",
}


@pytest.mark.parametrize(("text", "item"), PLAIN.items())
def test_a_clear_name_needs_no_assumption(text: str, item: str) -> None:
    choice = found(text)
    assert choice.accelerator.id == item
    assert choice.n_accelerators == 1
    assert choice.assumptions == ()


@pytest.mark.parametrize(("text", "expected"), AMBIGUOUS.items())
def test_an_ambiguous_name_tells_the_alternatives(
    text: str, expected: tuple[str, set[str]]
) -> None:
    usual, others = expected
    choice = found(text)
    assert choice.accelerator.id == usual
    (assumption,) = choice.assumptions
    assert assumption.value == usual
    assert all(other in assumption.why for other in others)
    assert assumption.change.startswith("--on ")


@pytest.mark.parametrize(("text", "expected"), COUNTED.items())
def test_a_count_is_read(text: str, expected: tuple[str, int]) -> None:
    choice = found(text)
    assert (choice.accelerator.id, choice.n_accelerators) == expected


@pytest.mark.parametrize(("text", "said"), REFUSED.items())
def test_what_cannot_be_told_is_refused_with_help(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        found(text)
    assert said in str(caught.value)
    assert all(problem.fix for problem in caught.value.problems)


def test_remarks_in_brackets_are_ignored_aloud() -> None:
    choice = found("A100 80GB SXM (Jean Zay, 8/node)")
    assert choice.accelerator.id == "a100-sxm-80gb"
    assert [a.value for a in choice.assumptions] == ["ignored"]


def test_the_family_may_stand_in_brackets() -> None:
    assert found("NVIDIA Blackwell GPU (B200-SXM-180GB)").accelerator.id == "b200-sxm"


def test_every_id_and_name_is_itself() -> None:
    for accelerator in CATALOG.accelerators.values():
        assert found(accelerator.id).accelerator is accelerator
        assert found(accelerator.name).accelerator is accelerator
        assert found(accelerator.id.upper()).accelerator is accelerator


def test_every_accelerator_is_in_a_family() -> None:
    assert {i for family in FAMILIES for i in family.ids} == set(CATALOG.accelerators)


@pytest.mark.shared
@pytest.mark.parametrize("table", ["llm_inference.csv", "llm_training.csv"])
def test_names_of_the_measured_rows_resolve_or_say_why(table: str) -> None:
    with shared_file(f"measured/{table}").open() as file:
        names = {row["accelerator"] for row in csv.DictReader(file)}
    unknown = set()
    for name in names:
        try:
            found(name)
        except InputError:
            unknown.add(name)
    assert unknown <= {
        "Arc Pro B60",
        "Arc Pro B70",
        "SambaNova SN40L",
        "H100 96GB HBM2e 2.4TB/s, 500W limit, 8/host NVLink, 400Gb/s RDMA per GPU",
    }


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("RTX PRO 4500 Blackwell", "rtx-pro-4500-bw"),
        ("Radeon RX 7900 XTX", "rx-7900-xtx"),
        ("Radeon AI PRO R9700", "r9700"),
        ("Arc Pro B60", "arc-b60"),
        ("H20 141GB", "h20-141gb"),
        ("H20", "h20"),
        ("EPYC 9755", "cpu-epyc-9755"),
        ("Xeon 6980P", "cpu-xeon-6980p"),
        ("A16", "a16"),
        ("dgx spark", "gb10"),
    ],
)
def test_boards_of_desks_and_small_servers_by_their_names(text: str, id: str) -> None:
    assert found(text).accelerator.id == id
