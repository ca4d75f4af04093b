"""The named causes: what each is called, how bad it is, and what helps, best first."""

from gpuplan.diagnose.cause import Cause, with_nothing
from gpuplan.diagnose.causes_compute import COMPUTE
from gpuplan.diagnose.causes_fleet import FLEET
from gpuplan.diagnose.causes_serving import SERVING

CAUSES: dict[str, Cause] = {
    name: with_nothing(cause) for name, cause in (SERVING | COMPUTE | FLEET).items()
}
