"""What an entry of the list of causes holds."""

from typing import NamedTuple

from gpuplan.domain.telemetry.diagnosis import Action, Severity

# What follows where nobody acts, by how bad it is.
LEFT_ALONE: dict[Severity, str] = {
    "fault": "it fails again, and work since the last checkpoint is lost each time",
    "slow": "work stays as slow as it is",
    "waste": "the same is paid for nothing, month after month",
}
NOTHING = Action(what="do nothing", effect="it stays as it is", cost="none")


class Cause(NamedTuple):
    """One entry of the list of causes."""

    title: str
    severity: Severity
    actions: tuple[Action, ...]
    more_devices_help: bool | None = None


def with_nothing(cause: Cause) -> Cause:
    """The cause with "do nothing" among its actions, and what that leads to."""
    if any(action.what == NOTHING.what for action in cause.actions):
        return cause
    effect = LEFT_ALONE.get(cause.severity, NOTHING.effect)
    nothing = Action(what=NOTHING.what, effect=effect, cost="none")
    return cause._replace(actions=(*cause.actions, nothing))


def do(what: str, effect: str, cost: str, low: float = 0.0, high: float = 0.0) -> Action:
    """An action with the range of what it brings."""
    return Action(what=what, effect=effect, cost=cost, gain_low_frac=low, gain_high_frac=high)
