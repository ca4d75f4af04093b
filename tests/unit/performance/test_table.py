import numpy as np

from fakes.models import model, moe_group
from fakes.steps import USUAL, work
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.performance.kernels.step import StepLoad, step_time_s
from gpuplan.performance.serving.table import CHUNK_ROWS, step_times_s


def test_a_table_equals_its_steps():
    n = CHUNK_ROWS + 17
    rng = np.random.default_rng(1)
    loads = StepLoad(*(rng.uniform(1, 2000, n) for _ in StepLoad._fields))
    network = work(model(moe_group()), layout=ServingLayout(tp=2))
    found = step_times_s(network, USUAL, loads)
    for i in (0, 1, CHUNK_ROWS - 1, CHUNK_ROWS, n - 1):
        alone = step_time_s(network, USUAL, StepLoad(*(float(c[i]) for c in loads)))
        assert found[i] == alone
