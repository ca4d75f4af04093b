"""Every golden document is what its command prints today."""

import json

import pytest

from golden.cases import FOLDER, case_names, differences, document


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("golden")


@pytest.mark.parametrize("name", case_names())
def test_document_is_as_recorded(name, scratch):
    golden = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    found = list(differences(json.loads(json.dumps(document(name, scratch))), golden))
    shown = "\n".join(found[:20])
    assert not found, (
        f"{len(found)} differences; if they are meant: python tools/write_golden.py\n{shown}"
    )


def test_no_document_is_left_without_a_case():
    recorded = {str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.json")}
    assert recorded == set(case_names())
