"""Names of a package that are loaded when they are asked for, so that `--help` answers at once."""

import ast
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(package: str, file: str) -> Callable[[str], Any]:
    """The package's `__getattr__`: names that the file imports for type checkers alone.

    They stand once, under `if TYPE_CHECKING:`; nothing of them is loaded before it is used.
    `__all__` is the list of them.
    """

    @cache
    def homes() -> dict[str, tuple[str, str]]:
        return _listed(ast.parse(Path(file).read_text(encoding="utf-8")))

    def load(name: str) -> Any:
        if name == "__all__":
            return sorted(homes())
        if name.startswith("__") or name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, function = homes()[name]
        return getattr(import_module(home), function)

    return load


def _listed(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """Name → its module, and what it is called there."""
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
