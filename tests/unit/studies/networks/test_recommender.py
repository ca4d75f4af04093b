"""Recommenders: tables and dense layers counted by hand, rates held against MLPerf's."""

import pytest

from gpuplan.catalog.architectures.read import read_model
from gpuplan.catalog.models import find_model
from gpuplan.domain.requests.requests import NetworkRequest
from gpuplan.studies.networks.predict import predict_network

TINY = {
    "model_type": "dlrm",
    "embedding_dim": 4,
    "num_embeddings_per_feature": [100, 10],
    "dense_in_features": 3,
    "dense_arch_layer_sizes": [8, 4],
    "over_arch_layer_sizes": [16, 1],
}


def test_tables_and_layers_are_counted_by_hand():
    model = read_model(TINY, name="tiny")
    bottom, top = 3 * 8 + 8 * 4, (4 + 3) * 16 + 16 * 1  # three vectors have three pairs
    assert model.embedding.n_params == 110 * 4
    assert model.main.groups[0].n_active_matrix_params == bottom + top
    assert model.n_params == 440 + bottom + top + (8 + 4) + (16 + 1)
    assert model.embedding.n_rows_per_sample == 2


def test_an_item_of_mlperf_reads_214_rows_and_takes_32_mflop():
    work = predict_network("dlrm", "h100", NetworkRequest(batch=1)).work
    crossed, top = 3 * 2 * 3456 * 512, 3456 * 1024 + 1024**2 + 1024 * 512 + 512 * 256 + 256
    bottom = 13 * 512 + 512 * 256 + 256 * 128
    assert work.flop == 2 * (crossed + top + bottom)
    assert work.activation_bytes == 214 * 128 * 2
    assert find_model("dlrm").n_params * 2 == pytest.approx(52.3e9, rel=0.001)  # a board's memory


@pytest.mark.parametrize(
    ("name", "on", "queries_per_s"),
    [("dlrm-v2", "h100", 69_699), ("dlrm-v1", "a100-80", 304_864), ("dlrm-v1", "l4", 91_950)],
)
def test_measured_networks_run_as_measured(name, on, queries_per_s):
    found = predict_network(name, on, NetworkRequest(batch=270 * 128))
    assert found.samples_per_s.value / 270 == pytest.approx(queries_per_s, rel=0.15)


def test_another_network_lies_between_the_two_measured_and_says_so(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(str(TINY).replace("'", '"'), encoding="utf-8")
    time = predict_network(str(path), "h100", NetworkRequest(batch=10_000_000_000)).batch_s
    assert time.tier == "estimated"
    measured = predict_network("dlrm", "h100", NetworkRequest(batch=10_000_000)).batch_s
    assert time.high / time.low > 1.4 * measured.high / measured.low
