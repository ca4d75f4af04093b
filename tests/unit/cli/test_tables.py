"""Tables of the terminal: names stay whole where the line has room for them."""

import io

import pytest
from rich.console import Console

from gpuplan.cli.output import _rich_table
from gpuplan.domain.sheet import Table


@pytest.mark.parametrize("name", ["8x_MI300X_SECURE", "gpu_8x_h100_sxm5", "NC40ads_H100_v5"])
def test_the_name_of_a_node_is_not_broken_at_a_hundred_columns(name):
    heads = (
        "purchase option",
        "node",
        "nodes",
        "GPUs",
        "$/node-h",
        "hours paid",
        "$/month",
        "as of",
    )
    row = ("on-demand at RunPod Secure Cloud, committed", name, "12", "8", "19.92", "100 %",
           "$1,174,500", "2026-11-02")  # fmt: skip
    table = Table(title="Cost", columns=heads, rows=(row,), right=heads[2:7])
    console = Console(width=100, file=(out := io.StringIO()))
    console.print(_rich_table(table, 100))
    assert name in out.getvalue()


def test_figures_are_never_cut_for_long_words():
    """Twenty blocks of a bar give way to the last column."""
    heads = (
        "accelerators",
        "step (s)",
        "speed-up",
        "efficiency",
        "",
        "cause of the loss",
        "$/h per %",
    )
    row = ("64", "3.748", "2.52", "32 %", "█" * 20 + " ← knee", "data parallel", "–")
    table = Table(title="", columns=heads, rows=(row,), right=(*heads[:4], heads[6]))
    console = Console(width=100, file=(out := io.StringIO()))
    console.print(_rich_table(table, 100))
    assert "$/h per %" in out.getvalue()
    assert "–" in out.getvalue()
