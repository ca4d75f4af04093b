"""Names in published tables: a size alone is no network."""

import pytest

from gpuplan.errors import InputError
from gpuplan.studies.measured.names import check_named, find_measured_model, named_model


@pytest.mark.parametrize("name", ["5B", "1.3b", "1024 B", "350M"])
def test_a_size_alone_is_refused_with_what_is_missing(name):
    with pytest.raises(InputError, match="is a size, not a network") as error:
        check_named(name)
    assert "n_layers" in str(error.value)


def test_a_missing_name_is_refused():
    with pytest.raises(InputError, match="is missing"):
        check_named("")


@pytest.mark.parametrize("name", ["GPT 175B", "Llama 3.1 70b", "Nemotron4 15b"])
def test_names_with_a_size_are_names(name):
    check_named(name)
    assert named_model(name).n_params > 1e10


def test_a_tuned_model_is_its_base():
    assert find_measured_model("chatglm2-6b").name == "THUDM/chatglm2-6b"
