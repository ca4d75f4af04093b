"""The stage that long work has reached, told to whoever listens; by default nobody does.

A server shows it beside a job: its workers listen around each question and pass on what begins.
What is computed does not depend on it: a stage is a sentence's beginning, never a value.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str], None]
_LISTENER: ContextVar[Listener | None] = ContextVar("stages", default=None)


def begin(stage: str) -> None:
    """Say which stage begins now.

    A verb and its object, as it stands before a colon: "sizing and simulating candidates".
    """
    listener = _LISTENER.get()
    if listener is not None:
        listener(stage)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Have every stage that begins inside told to the listener."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)
