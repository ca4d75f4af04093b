"""What an entry of the list of causes holds."""

from typing import NamedTuple

from gpuplan.domain.diagnosis import Action, Severity

NOTHING = Action(what="do nothing", effect="it stays as it is", cost="none")


class Cause(NamedTuple):
    """One entry of the list of causes."""

    title: str
    severity: Severity
    actions: tuple[Action, ...]
    more_devices_help: bool | None = None


def do(what: str, effect: str, cost: str, low: float = 0.0, high: float = 0.0) -> Action:
    """An action with the range of what it brings."""
    return Action(what=what, effect=effect, cost=cost, gain_low_frac=low, gain_high_frac=high)
