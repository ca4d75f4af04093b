"""Files as plain Python values, each with its line: YAML and JSON, nothing that runs or explodes.

Every reader of user files goes through here, so bombs, tags, duplicate keys and wrong encodings
are refused in one place. The tree is built from parser events: bounds hold before memory is spent.
"""

import re
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import NoReturn

import yaml

from gpuplan.domain.noun import dataclass
from gpuplan.errors import InputError, Problem, printable
from gpuplan.inputs.documents.document import MAX_DEPTH, Document, KeyPath, Lines, show_path
from gpuplan.inputs.documents.scalars import resolve, shorten

MAX_BYTES = 2_000_000
MAX_NODES = 100_000
MAX_ALIASED_NODES = 1_000

_BYTE_ORDER_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
# The closing quote is optional: a string without one must not be tried again from its middle.
_JSON_STRING_OR_TAB = re.compile(r'"(?:[^"\\\n]|\\.)*"?|\t')
_SURROGATE_PAIR = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


def shown_problem(where: str, what: str, fix: str) -> Problem:
    """A problem whose words may hold parts of the file: printable, on one line."""
    return Problem(printable(where), printable(what), printable(fix))


def read_yaml(path: Path) -> Document:
    """The one document of a YAML or JSON file; raises InputError with every problem found."""
    return read_yaml_text(_text_of(path), name=str(path))


def read_yaml_text(text: str, *, name: str) -> Document:
    """The one document in this text; the name stands for the file in messages."""
    if len(text) > MAX_BYTES:
        raise InputError(name, [_too_large(name)])
    text = _without_json_only_forms(text.removeprefix("\ufeff"))
    tree = _Tree(name)
    try:
        for event in _events(text):
            tree.take(event)
    except yaml.YAMLError as error:
        tree.stop(*_syntax_problem(error, text))
    if tree.root is None and not tree.problems:
        tree.stop(1, "the file is empty", "`gpuplan init` writes a commented example")
    if tree.problems or tree.root is None:
        raise InputError(name, tree.problems)
    return Document(name=name, data=tree.root.value, lines=tree.root.lines)


def _text_of(path: Path) -> str:
    name = str(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        problem = shown_problem(name, f"cannot be read: {reason}", "name a file that exists")
        raise InputError(name, [problem]) from None
    if len(raw) > MAX_BYTES:
        raise InputError(name, [_too_large(name)])
    return _decoded(raw, name)


def _too_large(name: str) -> Problem:
    fix = "keep long lists, e.g. traces, in files of their own"
    return Problem(name, f"is larger than {MAX_BYTES / 1e6:.0f} MB", fix)


def _decoded(raw: bytes, name: str) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if raw.startswith(mark):
            raise InputError(name, [Problem(name, f"is in {encoding}", "save it as UTF-8")])
    if b"\x00" in raw:
        line = raw[: raw.index(b"\x00")].count(b"\n") + 1
        what = "holds a zero byte: binary, or UTF-16 without a mark"
        raise InputError(name, [Problem(f"{name}:{line}", what, "save it as UTF-8 text")])
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        what = f"byte 0x{raw[error.start]:02x} is not UTF-8 (perhaps Latin-1)"
        problem = Problem(f"{name}:{line}", what, "save the file as UTF-8")
        raise InputError(name, [problem]) from None


def _without_json_only_forms(text: str) -> str:
    """JSON in the subset that YAML reads: no tabs between tokens, no surrogate pairs."""
    if not text.lstrip().startswith(("{", "[")):
        return text

    def plain(match: re.Match[str]) -> str:
        token = match.group()
        return " " if token == "\t" else _SURROGATE_PAIR.sub(_joined_surrogates, token)

    return _JSON_STRING_OR_TAB.sub(plain, text)


def _joined_surrogates(match: re.Match[str]) -> str:
    high, low = (int(part, 16) for part in match.groups())
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08X}"


def _events(text: str) -> Iterator[yaml.Event]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    _refuse_surrogates(text)
    return iter(yaml.parse(text, Loader=loader))


def _refuse_surrogates(text: str) -> None:
    # The C parser encodes on its own and would end in an error that is not YAML's.
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise yaml.reader.ReaderError("", error.start, ord(text[error.start]), "", "") from None


def _syntax_problem(error: yaml.YAMLError, text: str) -> tuple[int, str, str]:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        # Only unprintable characters come without a mark; their position counts bytes.
        at = getattr(error, "position", 0) or 0
        line = text.encode("utf-8", errors="replace")[:at].count(b"\n") + 1
        return line, "holds a character that text cannot have", "remove it"
    lines = text.split("\n")
    found = lines[mark.line] if mark.line < len(lines) else ""
    what = f"is not YAML here: {getattr(error, 'problem', None) or 'cannot be parsed'}"
    if "\t" in found[: mark.column + 1]:
        return mark.line + 1, "holds a tab where YAML wants spaces", "indent with spaces"
    fix = (
        f"correct the line {shorten(found.strip())!r}"
        if found.strip()
        else "correct the lines above"
    )
    return mark.line + 1, what, fix


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """A value that is read to its end, and how large it is: an alias stands for it again."""

    value: object
    lines: Lines
    n_nodes: int = 1
    height: int = 0


@dataclass(slots=True)
class _Open:
    """A mapping or list that is being read."""

    value: dict[str, object] | list[object]
    line: int
    anchor: str | None
    children: dict[str | int, Lines] = field(default_factory=dict)
    key: str | None = None
    key_line: int = 0
    n_nodes: int = 1
    height: int = 1


class _Tree:
    """Builds the document from events, with bounds; recursion-free."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.root: _Node | None = None
        self.problems: list[Problem] = []
        self._stack: list[_Open] = []
        self._anchors: dict[str, _Node] = {}
        self._n_nodes = 0
        self._n_aliased = 0
        self._n_documents = 0

    def stop(self, line: int, what: str, fix: str) -> NoReturn:
        """End reading here with all that was found so far."""
        self._note(line, what, fix)
        raise InputError(self.name, self.problems) from None

    def take(self, event: yaml.Event) -> None:
        """Extend the tree by one more event of the parser."""
        if isinstance(event, yaml.DocumentStartEvent):
            self._start_document(_line(event))
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._open(event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._close()

    def _note(self, line: int, what: str, fix: str) -> None:
        path = shorten(show_path(self._path()), 80)
        where = f"{self.name}:{line}: {path}" if path else f"{self.name}:{line}"
        self.problems.append(shown_problem(where, what, fix))

    def _path(self) -> KeyPath:
        parts: list[str | int] = []
        for part in self._stack:
            if isinstance(part.value, list):
                parts.append(len(part.value))
            elif part.key is not None:
                parts.append(part.key)
        return tuple(parts)

    def _start_document(self, line: int) -> None:
        self._n_documents += 1
        if self._n_documents > 1:
            self.stop(line, "a second document begins", "keep one document per file")

    def _alias(self, event: yaml.AliasEvent) -> None:
        line = _line(event)
        node = self._anchors.get(str(event.anchor))
        if self._expects_key():
            self.stop(line, "a key is an alias", "write the key out")
        if node is None:
            self.stop(line, f"*{event.anchor} stands for nothing before it", "write the value out")
        self._n_aliased += node.n_nodes
        if self._n_aliased > MAX_ALIASED_NODES:
            what = f"aliases stand for more than {MAX_ALIASED_NODES} values"
            self.stop(line, what, "write the values out")
        self._count(line, node.n_nodes)
        self._check_depth(line, node.height)
        self._add(node, line)

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        line = _line(event)
        self._count(line, 1)
        self._refuse_tag(event, line)
        if self._expects_key():
            self._take_key(event, line)
            return
        value: object = event.value
        if not event.style and event.implicit[0]:
            resolved = resolve(event.value)
            value = resolved.value
            if resolved.what:
                self._note(line, resolved.what, resolved.fix)
        node = _Node(value=value, lines=Lines(line=line))
        self._add(node, line, anchor=event.anchor)

    def _take_key(self, event: yaml.ScalarEvent, line: int) -> None:
        key = event.value
        if event.anchor:
            self.stop(line, "a key carries an anchor", "put anchors on values only")
        if key == "<<" and not event.style:
            self.stop(line, "merges (<<) another mapping", "write the keys out")
        if not key.strip():
            self.stop(line, "a key is empty", "give the key a name")
        top = self._stack[-1]
        if key in top.children:
            first = top.children[key].line
            what = f"{shorten(key)} is given twice, on lines {first} and {line}"
            self._note(line, what, "keep one of them")
        top.key, top.key_line = key, line

    def _open(self, event: yaml.MappingStartEvent | yaml.SequenceStartEvent) -> None:
        line = _line(event)
        self._count(line, 1)
        self._refuse_tag(event, line)
        if self._expects_key():
            self.stop(line, "a key is a list or a mapping", "use a word as key, and quote {…}")
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        value: dict[str, object] | list[object] = {} if is_mapping else []
        self._check_depth(line, 1)
        self._stack.append(_Open(value, line, event.anchor))

    def _close(self) -> None:
        done = self._stack.pop()
        lines = Lines(line=done.line, children=done.children)
        node = _Node(value=done.value, lines=lines, n_nodes=done.n_nodes, height=done.height)
        # Only now: an alias inside its own anchor finds nothing, so no value holds itself.
        self._add(node, done.line, anchor=done.anchor)

    def _add(self, node: _Node, line: int, *, anchor: str | None = None) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        if not self._stack:
            self.root = node
            return
        top = self._stack[-1]
        top.n_nodes += node.n_nodes
        top.height = max(top.height, node.height + 1)
        if isinstance(top.value, list):
            top.children[len(top.value)] = Lines(line=line, children=node.lines.children)
            top.value.append(node.value)
        elif top.key is not None:
            top.children[top.key] = Lines(line=top.key_line, children=node.lines.children)
            top.value[top.key] = node.value
            top.key = None

    def _expects_key(self) -> bool:
        top = self._stack[-1] if self._stack else None
        return top is not None and isinstance(top.value, dict) and top.key is None

    def _refuse_tag(self, event: yaml.NodeEvent, line: int) -> None:
        tag = getattr(event, "tag", None)
        if tag is not None:
            fix = 'remove the tag; put text in "quotes", write numbers as they are'
            self.stop(line, f"the tag {shorten(tag)} is not allowed", fix)

    def _count(self, line: int, n_more: int) -> None:
        self._n_nodes += n_more
        if self._n_nodes > MAX_NODES:
            self.stop(line, f"the file holds more than {MAX_NODES} values", "make it smaller")

    def _check_depth(self, line: int, n_more: int) -> None:
        if len(self._stack) + n_more > MAX_DEPTH:
            self.stop(line, f"is nested deeper than {MAX_DEPTH} levels", "flatten it")


def _line(event: yaml.Event) -> int:
    return int(event.start_mark.line) + 1 if event.start_mark else 1
