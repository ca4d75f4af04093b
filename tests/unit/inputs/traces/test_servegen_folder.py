import json

import pytest

from gpuplan.demand.mixes import mix_requests
from gpuplan.errors import InputError
from gpuplan.inputs.traces.servegen import histogram, read_servegen_folder


@pytest.fixture
def folder(tmp_path):
    rates = "0,10.0,2.0,Gamma,0.25,0.4\n600,20.0,1.5,Weibull,0.7,0.04\n1200,0.0,0.0,,0.0,0.0\n"
    (tmp_path / "chunk-0-trace.csv").write_text(rates)
    (tmp_path / "chunk-7-trace.csv").write_text("0,1.0,1.0,Gamma,1.0,1.0\nbroken\n")
    lengths = {
        "600": {"input_tokens": "{900: 1.0}", "output_tokens": "{9: 1.0}"},
        "0": {"input_tokens": "{100: 0.5, 200.0: 5e-1}", "output_tokens": "{5: 1.0}"},
        "1200": {"input_tokens": "nothing", "output_tokens": "{5: 1.0}"},
    }
    (tmp_path / "chunk-0-dataset.json").write_text(json.dumps(lengths))
    return tmp_path


def test_clients_of_a_folder(folder):
    found = read_servegen_folder(folder)
    first, second = found.mix.clients
    assert first.requests_per_s.tolist() == [10.0, 20.0, 0.0]
    assert first.is_weibull.tolist() == [0, 1, 0]
    assert [window.start_s for window in first.lengths] == [0.0, 600.0]
    assert second.lengths == ()
    assert any("1 of them have no lengths" in sentence for sentence in found.remarks)
    assert any("2 bad lines or windows" in sentence for sentence in found.remarks)


def test_requests_follow_the_windows(folder):
    mix = read_servegen_folder(folder).mix
    requests, client = mix_requests(mix, start_s=0.0, duration_s=1800.0, seed=2)
    own = requests.take(client == 0)
    assert len(own) == pytest.approx(18_000, rel=0.05)
    assert set(own.input_tokens[own.arrive_s < 600].tolist()) == {100, 200}
    assert set(own.input_tokens[own.arrive_s >= 600].tolist()) == {900}
    assert own.arrive_s.max() < 1200


@pytest.mark.parametrize(
    "text", ["", "{}", "{1: }", "{a: 1}", "[1, 2]", "{1: -1}", "{1: 0}", "{1: nan}", None, {1: 1}]
)
def test_what_is_no_histogram(text):
    assert histogram(text) is None


def test_folders_without_clients_are_refused(tmp_path):
    with pytest.raises(InputError, match="chunk-"):
        read_servegen_folder(tmp_path)
    (tmp_path / "chunk-0-trace.csv").write_text("0,1,1,Gamma,1,1\n")
    (tmp_path / "chunk-0-dataset.json").write_text("{")
    with pytest.raises(InputError, match="no JSON"):
        read_servegen_folder(tmp_path)
