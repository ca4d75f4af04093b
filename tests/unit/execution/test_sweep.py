"""Sweeps: the same bytes on any number of workers, through kills, and nothing twice."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from gpuplan.errors import InputError, SolverError
from gpuplan.execution import sweep as sweeps
from gpuplan.execution.store import ResultStore, digest_of
from gpuplan.execution.sweep import Engine, SweepCase, on_cores, sweep


def squared(case: dict[str, Any]) -> dict[str, int]:
    """Work that leaves a mark, and that kills its process where it is told to."""
    with Path(case["log"]).open("a") as log:
        log.write(f"{case['n']}\n")
    if case.get("dies") and not Path(case["dies"]).exists():
        Path(case["dies"]).write_text("once")
        os.kill(os.getpid(), signal.SIGKILL)
    if case.get("deadly"):
        os.kill(os.getpid(), signal.SIGKILL)
    return {"square": case["n"] ** 2}


def cases(folder: Path, n: int = 12, **special: Any) -> list[SweepCase]:
    found = [{"n": i, "log": str(folder / "log")} for i in range(n)]
    found[n // 2] |= special
    return [SweepCase(digest_of({"n": case["n"]}), case) for case in found]


def computed(folder: Path) -> list[int]:
    return sorted(map(int, (folder / "log").read_text().split()))


def content(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(folder.rglob("*.json"))}


@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_workers_change_nothing_but_time(tmp_path: Path, n_workers: int):
    store, done = ResultStore(tmp_path / "store"), []
    engine = Engine(n_workers=n_workers)
    n = sweep(squared, cases(tmp_path), store=store, engine=engine, progressed=done.append)
    assert (n, done) == (12, list(range(13)))
    assert [store.read(each.digest) for each in cases(tmp_path)] == [
        {"square": i**2} for i in range(12)
    ]
    alone = ResultStore(tmp_path / "alone")
    sweep(squared, cases(tmp_path), store=alone, engine=Engine())
    assert content(tmp_path / "store") == content(tmp_path / "alone")


def test_finished_work_is_not_repeated(tmp_path: Path):
    store = ResultStore(tmp_path / "store")
    sweep(squared, cases(tmp_path, 5), store=store, engine=Engine())
    assert sweep(squared, cases(tmp_path), store=store, engine=Engine()) == 7
    assert computed(tmp_path) == list(range(12))


def test_equal_cases_are_computed_once(tmp_path: Path):
    store = ResultStore(tmp_path / "store")
    assert sweep(squared, cases(tmp_path, 4) * 3, store=store, engine=Engine()) == 4
    assert computed(tmp_path) == [0, 1, 2, 3]


def test_what_ends_a_sweep_costs_only_what_was_under_way(tmp_path: Path):
    store = ResultStore(tmp_path / "store")

    def interrupted(n_done: int) -> None:
        if n_done == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(squared, cases(tmp_path), store=store, engine=Engine(), progressed=interrupted)
    assert sweep(squared, cases(tmp_path), store=store, engine=Engine()) == 6
    assert computed(tmp_path) == list(range(12))


def test_a_lost_worker_changes_nothing(tmp_path: Path):
    store = ResultStore(tmp_path / "store")
    found = cases(tmp_path, dies=str(tmp_path / "died"))
    assert sweep(squared, found, store=store, engine=Engine(n_workers=2)) == 12
    assert (tmp_path / "died").exists()
    assert [store.read(each.digest) for each in found] == [{"square": i**2} for i in range(12)]


def test_a_case_that_kills_every_worker_is_named(tmp_path: Path):
    found = [each.case for each in cases(tmp_path, 3, deadly=True)]
    with pytest.raises(SolverError, match="worker was lost 4 times"):
        list(on_cores(squared, found, 2))


@pytest.mark.parametrize("damage", [b"", b"x", b"half"])
def test_a_damaged_result_is_computed_again(tmp_path: Path, damage: bytes):
    store, (one_,) = ResultStore(tmp_path / "store"), cases(tmp_path, 1)
    sweep(squared, [one_], store=store, engine=Engine())
    path = store.path(one_.digest)
    path.write_bytes(path.read_bytes()[:-4] if damage == b"half" else damage)
    assert not store.has(one_.digest)
    assert sweep(squared, [one_], store=store, engine=Engine()) == 1
    assert store.read(one_.digest) == {"square": 0}


def test_without_ray_its_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"gpuplan\[ray\]"):
        list(sweeps.on_ray(squared, [1], 1, None))


def shipped() -> Any:
    """The work as a function that needs no module of the tests where it runs."""

    def work(case: dict[str, Any]) -> dict[str, int]:
        import os  # noqa: PLC0415
        import pathlib  # noqa: PLC0415

        if case.get("dies") and not pathlib.Path(case["dies"]).exists():
            pathlib.Path(case["dies"]).write_text("once")
            os.kill(os.getpid(), 9)
        return {"square": case["n"] ** 2}

    return work


def test_what_ray_prints_does_not_reach_the_results(tmp_path: Path, monkeypatch, capsys):
    def talking(compute, chosen, *_):
        sys.stdout.write("a worker died\n")
        return ((place, compute(case)) for place, case in enumerate(chosen))

    monkeypatch.setattr(sweeps, "on_ray", talking)
    store = ResultStore(tmp_path / "store")
    assert sweep(squared, cases(tmp_path, 3), store=store, engine=Engine("ray", 2)) == 3
    assert capsys.readouterr() == ("", "a worker died\n")


def test_ray_gives_the_same_bytes_though_a_worker_is_lost(tmp_path: Path):
    """In an environment that has Ray: `python3 dev.py ray`."""
    pytest.importorskip("ray")
    dies = {"local": {}, "ray": {"dies": str(tmp_path / "died")}}
    for name, n_workers in (("local", 1), ("ray", 2)):
        found = cases(tmp_path, 8, **dies[name])
        store = ResultStore(tmp_path / name)
        assert sweep(shipped(), found, store=store, engine=Engine(name, n_workers)) == 8
    assert (tmp_path / "died").exists()
    assert content(tmp_path / "local") == content(tmp_path / "ray")
