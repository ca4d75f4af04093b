"""Who may ask: tokens, rates, and doors that stay shut to strangers."""

import pytest

from gpuplan.errors import InputError
from gpuplan.server.rest import access as rules
from gpuplan.server.rest.access import LOCAL, Access, Rates, read_tokens, refuse_open


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens"
    path.write_text("# who\nann secret-a\nbob secret-b\n", encoding="utf-8")
    return path


def test_a_token_names_its_owner(tokens):
    found = Access(owners=read_tokens(tokens))
    assert found.owner_of("Bearer secret-a") == "ann"
    assert found.owner_of("bearer secret-b") == "bob"
    assert found.owner_of("Bearer wrong") is None
    assert found.owner_of("Basic secret-a") is None
    assert found.owner_of(None) is None


def test_tokens_are_not_kept(tokens):
    assert "secret" not in repr(Access(owners=read_tokens(tokens)))


def test_without_tokens_there_is_one_user():
    assert Access().owner_of(None) == LOCAL


@pytest.mark.parametrize("text", ["", "ann\n", "ann secret more\n"])
def test_a_file_that_is_no_list_is_refused(tmp_path, text):
    path = tmp_path / "tokens"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="owner token"):
        read_tokens(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="tokens"):
        read_tokens(tmp_path / "nothing")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.9.9.9"])
def test_this_machine_needs_no_token(host):
    refuse_open(host, Access())


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.4", "example.org", "::"])
def test_others_need_one(host, tokens):
    with pytest.raises(InputError, match="--tokens"):
        refuse_open(host, Access())
    refuse_open(host, Access(owners=read_tokens(tokens)))


def test_a_burst_ends_and_comes_back(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(rules, "monotonic", lambda: now[0])
    rates = Rates(Access(requests_per_s=2.0, burst=3))
    assert [rates.allows("ann") for _ in range(4)] == [True, True, True, False]
    assert rates.allows("bob")
    now[0] += 1.0
    assert [rates.allows("ann") for _ in range(3)] == [True, True, False]
