"""Networks that are no language models: what may be chosen is measured, and as likely as asked."""

import pytest

from gpuplan import api
from gpuplan.studies.networks.predict import is_covered


def planned(words):
    return api.plan(words, n_samples=20).to_dict()


@pytest.mark.parametrize(
    ("network", "board", "is_known"),
    [
        ("stabilityai/stable-diffusion-xl-base-1.0", "h100-sxm", True),
        ("stabilityai/stable-diffusion-xl-base-1.0", "quadro-rtx-6000", False),
        ("stabilityai/stable-diffusion-xl-base-1.0", "a30", False),
        ("BAAI/bge-m3", "l40s", True),
        ("BAAI/bge-m3", "h100-sxm", True),  # encoders err as much on any board
        ("BAAI/bge-m3", "quadro-rtx-6000", False),
        ("no such network", "h100-sxm", False),
    ],
)
def test_boards_that_measurements_cover(network, board, is_known):
    assert is_covered(network, board) is is_known


def test_a_fleet_that_cannot_be_likely_enough_is_not_chosen():
    """An A40 takes 27 of 30 seconds for an image: no number of them makes that sure."""
    work = {
        "name": "images",
        "kind": "online_inference",
        "model": "black-forest-labs/FLUX.1-dev",
        "demand": {"requests_per_s": 0.5},
        "request": {
            "input_tokens": 77,
            "output_tokens": 0,
            "image_width_px": 1024,
            "image_height_px": 1024,
            "steps": 28,
        },
        "slo": {"e2e_p95_s": 30},
    }
    found = planned({"version": 1, "name": "pictures", "workloads": [work]})
    rows = found["comparison"]
    [chosen] = [row for row in rows if row["is_chosen"]]
    assert chosen["probability_frac"] >= 0.8
    assert chosen["accelerator"] in ("h100-sxm", "b200-sxm")
    cheaper = [
        r for r in rows if r["usd_per_month"] and r["usd_per_month"] < chosen["usd_per_month"]
    ]
    assert cheaper
    assert all(not row["is_eligible"] for row in cheaper)
