"""Worked questions: quantities of a plan's document against bounds that were reckoned by hand."""

import ast
import math
import operator
import re
from collections.abc import Callable
from datetime import date
from typing import Any

from gpuplan import api
from gpuplan.inputs.documents.yaml_reader import read_yaml
from gpuplan.units import DAY, HOUR, KW, MONTH, MS
from shared_data import ROOT

FILE = ROOT / "examples" / "questions.yaml"
TODAY = date(2026, 11, 16)
Document = dict[str, Any]
OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
FUNCTIONS = {"ceil": math.ceil, "min": min, "max": max}


def questions() -> list[Document]:
    """All of them, in the order of the file."""
    return read_yaml(FILE).data["questions"]


def answered(question: Document) -> Document:
    """The plan's document, as `gpuplan plan --json` prints it."""
    tree = {"version": 1, "name": question["id"], **question["scenario"]}
    return api.plan(tree, today=TODAY, n_samples=20).to_dict()


def value_of(expression: str) -> float:
    """Plain arithmetic; nothing else is understood."""
    return _value(ast.parse(expression, mode="eval").body)


def _value(node: ast.AST) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.Call) and ast.unparse(node.func) in FUNCTIONS:
        return FUNCTIONS[ast.unparse(node.func)](*map(_value, node.args))
    raise ValueError(f"{ast.unparse(node)}: only plain arithmetic is understood")


def outside(question: Document, document: Document) -> list[str]:
    """Bounds that the answer leaves, each with both numbers and the reason."""
    if document["plan"] is None:
        return [f"no plan: {document['explanation']['conflicts']}"]
    found = []
    for bound in question["bounds"]:
        side = "least" if "least" in bound else "most"
        limit, amount = value_of(str(bound["value"])), quantity(bound[side], document)
        is_inside = amount >= limit - 1e-9 if side == "least" else amount <= limit + 1e-9
        if not is_inside:
            text = f"{bound[side]} is {amount:,.6g}, at {side} {limit:,.6g}: {bound['because']}"
            found.append(text)
    return found


def quantity(name: str, document: Document) -> float:
    """A named figure of the document."""
    of_one = re.fullmatch(r"(\w+)\((.+)\)", name)
    if of_one:
        pools = [p for p in document["plan"]["pools"] if p["workload"] == of_one[2]]
        return float(sum(pool["n_accelerators"] for pool in pools))
    return float(QUANTITIES[name](document["plan"]))


def _lines(plan: Document) -> list[Document]:
    return [line for pool in plan["pools"] for line in pool["purchases"]]


def _is_existing(line: Document) -> bool:
    return line["purchase"] == "existing"


def _in_nodes(plan: Document) -> float:
    return sum(line["n_nodes"] * line["n_accelerators_per_node"] for line in _lines(plan))


def _hours(plan: Document) -> float:
    """Accelerator-hours that are paid for over the span."""
    paid = (
        line["n_nodes"] * line["n_accelerators_per_node"] * line["paid_frac"]
        for line in _lines(plan)
    )
    # Runs that end within a month are billed in one.
    return sum(paid) * max(plan["span_s"], MONTH) / HOUR


def _latency_ms(metric: str) -> Callable[[Document], float]:
    def found(plan: Document) -> float:
        rows = plan["slo"]["promises"]
        return next(r["reached_s"]["value"] / MS for r in rows if r["what"].startswith(metric))

    return found


QUANTITIES: dict[str, Callable[[Document], float]] = {
    "accelerators": lambda plan: sum(pool["n_accelerators"] for pool in plan["pools"]),
    "peak_accelerators": _in_nodes,
    "accelerator_hours": _hours,
    "usd_per_month": lambda plan: plan["cost_usd_per_month"]["value"],
    "total_usd": lambda plan: plan["total_usd"],
    "power_kw": lambda plan: plan["power_w"]["value"] / KW,
    "days": lambda plan: plan["span_s"] / DAY,
    "existing_nodes": lambda plan: sum(x["n_nodes"] for x in _lines(plan) if _is_existing(x)),
    "other_nodes": lambda plan: sum(x["n_nodes"] for x in _lines(plan) if not _is_existing(x)),
    "ttft_ms": _latency_ms("ttft"),
    "tpot_ms": _latency_ms("tpot"),
}
