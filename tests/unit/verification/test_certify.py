"""The whole certificate: a sound plan passes, and any changed number is found."""

from copy import deepcopy
from dataclasses import replace

import pytest

from gpuplan.domain.plan.certificate import Check
from gpuplan.errors import ViolationError
from gpuplan.verification.certify import (
    certificate_of,
    disagreement,
    refuse_disagreement,
    refuse_unverified,
    seal_checks,
)
from gpuplan.verification.claims import is_number

# Numbers of the plan that other numbers of the plan, or facts, must contradict when they change,
# with no look at a seal.
BY_ARITHMETIC = (
    "n_accelerators", "n_replicas", "n_spare_replicas", "n_nodes", "n_accelerators_per_node",
    "paid_frac", "usd_per_month", "total_usd", "span_s", "limit_s",
)  # fmt: skip


def numbers(value, path=()):
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in entries:
        if isinstance(item, dict | list):
            yield from numbers(item, (*path, key))
        elif is_number(item):
            yield (*path, key)


def changed(document, path, factor=2.0):
    """The document with one number made larger."""
    whole = deepcopy(document)
    place = whole
    for step in path[:-1]:
        place = place[step]
    old = place[path[-1]]
    place[path[-1]] = type(old)(old * factor) + (1 if old * factor == old else 0)
    return whole


def test_a_sound_plan_agrees_with_itself(document, facts, failed):
    checks = certificate_of(document, facts)
    assert not failed(checks)
    assert len(checks) > 40


def test_the_plan_carries_what_the_checker_finds_again(planned, document, facts):
    stored = {row["name"]: row["found"] for row in document["certificate"]}
    again = {check.name: check.found for check in certificate_of(document, facts)}
    assert stored.keys() <= again.keys()
    assert {name: again[name] for name in stored} == stored


def test_every_changed_number_is_found(document, facts, failed):
    paths = [path for path in numbers(document) if path[0] not in ("schema_version", "gap")]
    assert len(paths) > 200
    once = {}
    for path in paths:
        # The replay does not depend on most figures: only seals and sums are made for each.
        section = path[0]
        if path[0] == "plan" or section not in once:
            checks = failed(certificate_of(changed(document, path), facts))
            assert checks, path
            once[section] = checks
        else:
            assert any(name.startswith("seal") for name in _seals(changed(document, path))), path


def _seals(document):
    return [check.name for check in seal_checks(document, ()) if not check.ok]


def test_numbers_of_the_plan_are_bound_by_arithmetic_not_by_seals_alone(document, facts, failed):
    bare = {key: value for key, value in document.items() if key != "certificate"}
    paths = [path for path in numbers(document["plan"], ("plan",)) if path[-1] in BY_ARITHMETIC]
    assert len(paths) >= len(BY_ARITHMETIC)
    unseen = [path for path in paths if not failed(certificate_of(changed(bare, path), facts))]
    assert not unseen
    lower = [path for path in paths if not failed(certificate_of(changed(bare, path, 0.5), facts))]
    assert not lower


def test_a_certificate_that_was_touched_is_found(document, facts, failed):
    document["certificate"][5]["found"] = 0.0
    assert "seal of certificate" in failed(certificate_of(document, facts))
    del document["certificate"][5]
    assert "seal of certificate" in failed(certificate_of(document, facts))


def test_without_a_plan_there_is_nothing_to_certify(facts):
    assert certificate_of({"plan": None}, facts) == ()


def test_a_disagreement_names_both_numbers():
    check = Check(
        name="bill", claimed=1.0, relation="=", found=2.5, tolerance_frac=0.0, unit="USD", ok=False
    )
    assert disagreement(check) == "claimed 1 USD, found 2.5 USD"
    with pytest.raises(ViolationError, match="claimed 1 USD, found") as error:
        refuse_disagreement("plan.yaml", (check,))
    assert error.value.exit_code == 4
    refuse_disagreement("plan.yaml", ())


def test_a_plan_that_disagrees_is_not_shown(planned):
    refuse_unverified(planned.answer)
    proof = planned.answer.proof
    turned = replace(proof.certificate[5], ok=False)
    with pytest.raises(ViolationError):
        refuse_unverified(replace(planned.answer, proof=replace(proof, certificate=(turned,))))
    refuse_unverified(replace(planned.answer, proof=None))
