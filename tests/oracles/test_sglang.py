"""The simulator against answers of SGLang's own scheduler, request by request."""

import numpy as np
import pytest

from oracles.sglang_mixes import mixed
from oracles.sglang_page import sglang_section
from oracles.sglang_runs import NEW, OLD, columns_of, differing, ours, recorded

FOUND = recorded()
# LPM of 0.5.21 in a burst is not known exactly: a few prefixes are found in another order.
NEARLY = ("sync|prefix: burst, LPM/0", "overlap|prefix: burst, LPM/0")
MOST_OFF = 0.02


@pytest.mark.parametrize("name", FOUND["cases"])
def test_every_request_is_served_as_by_the_engine_itself(name):
    case, true = FOUND["cases"][name], FOUND[NEW][name]
    assert differing(ours(case), true) == []
    assert differing(ours(case, method="step"), true) == []


@pytest.mark.parametrize("name", [name for name in FOUND[OLD] if name not in NEARLY])
def test_the_older_version_has_its_own_rules(name):
    assert differing(ours(FOUND["cases"][name], version=OLD), FOUND[OLD][name]) == []


@pytest.mark.parametrize("name", NEARLY)
def test_where_the_older_order_is_not_known_means_are_close(name):
    case, true = FOUND["cases"][name], FOUND[OLD][name]
    mine, arrive_s = ours(case, version=OLD), np.array(case["requests"][0])
    for column in ("first_s", "end_s"):
        ratio = np.mean(mine[column] - arrive_s) / np.mean(np.array(true[column]) - arrive_s)
        assert ratio == pytest.approx(1.0, abs=MOST_OFF)


def test_versions_and_overlap_make_a_difference():
    name = "sync|sequence-bound, short answers/0"
    case = FOUND["cases"][name]
    assert differing(ours(case, version=OLD), FOUND[NEW][name])
    ahead = case | {"limits": case["limits"] | {"is_ahead": True}}
    assert differing(ours(ahead), FOUND[NEW][name])


def test_what_is_asked_for_decides_who_is_let_in():
    case = FOUND["cases"]["sync|memory-tight, EOS, asks 4096/0"]
    modest = case | {
        "requests": [*case["requests"][:3], case["requests"][2], *case["requests"][4:]]
    }
    assert ours(modest)["first_s"].mean() < ours(case)["first_s"].mean()


@pytest.mark.parametrize(
    ("number", "n_steps", "n_found", "sum_s"),
    [
        (65, 546, 3456, 246.4971009135),
        (69, 2626, 7808, 437.158249227),
        (91026, 362, 4928, 28.6648988455),
    ],
)
def test_text_is_kept_and_evicted_as_by_the_engine_itself(number, n_steps, n_found, sum_s):
    """Answers of 0.5.23: passes in which a prompt is cut and nobody waits are not counted.

    In 91026 decodes ride along with prompts: text goes for the prompts first, for decodes then.
    """
    case = mixed(number)
    found = ours(case | {"requests": columns_of(case["requests"])})
    assert (found["n_steps"], sum(found["hits"])) == (n_steps, n_found)
    assert found["first_s"].sum() == pytest.approx(sum_s, abs=1e-6)


def test_retractions_are_recorded():
    n = {name: sum(FOUND[NEW][name]["n_preemptions"]) for name in FOUND["cases"]}
    assert sum(n.values()) > 20


def test_the_page_tells_what_the_runs_say():
    rows = [row for part in sglang_section() for row in part.splitlines() if " of " in row]
    rows = [row for row in rows if row.startswith("| ")]
    assert len(rows) == len({name.split("|")[1] for name in FOUND["cases"]})
    counted = [row.split("|")[2].split(" of ") for row in rows]
    assert all(equal.strip() == n.strip() for equal, n in counted)
