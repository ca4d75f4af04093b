"""Text of files: YAML documents and JSON, the same bytes for the same plan."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from gpuplan.domain.plan.deployed import RenderedFile
from gpuplan.render.reasons import commented


class _Plain(yaml.SafeDumper):
    """YAML without anchors, with scripts as blocks that people can read."""

    def ignore_aliases(self, data: Any) -> bool:
        """Nothing is shared."""
        return True


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style="|" if "\n" in text else None
    )


_Plain.add_representer(str, _string)


def kube_name(text: str) -> str:
    """A name that Kubernetes takes."""
    plain = "".join(sign if sign.isalnum() else "-" for sign in text.lower())
    return plain.strip("-") or "team"


def yaml_text(document: Mapping[str, Any], comments: Iterable[str] = ()) -> str:
    """One document with its comments before it."""
    body = yaml.dump(dict(document), Dumper=_Plain, sort_keys=False, allow_unicode=True, width=1000)
    return commented(comments) + body


def yaml_file(path: str, *documents: str) -> RenderedFile:
    """Several documents in one file."""
    return text_file(path, "---\n".join(documents))


def json_file(path: str, document: Mapping[str, Any]) -> RenderedFile:
    """A JSON document."""
    return text_file(path, json.dumps(document, indent=2, allow_nan=False) + "\n")


def text_file(path: str, text: str) -> RenderedFile:
    """A file of text."""
    return RenderedFile(path=path, content=text.encode())


def without_none(tree: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping without keys that have nothing to say, at every level."""
    cleaned = {
        key: without_none(value) if isinstance(value, Mapping) else value
        for key, value in tree.items()
    }
    return {key: value for key, value in cleaned.items() if value is not None}
