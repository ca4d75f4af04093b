"""How to reach a monitoring server, and what stretch of time to ask for."""

from urllib.parse import urlsplit, urlunsplit

from gpuplan.domain.noun import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAccess:
    """Address and credentials; secrets never leave this value."""

    url: str
    token: str = ""
    user: str = ""
    password: str = ""
    client_cert: tuple[str, str] = ("", "")  # files of certificate and key, where a server asks
    ca_file: str = ""  # authority to trust besides the system's
    is_tls_verified: bool = True
    headers: tuple[tuple[str, str], ...] = ()  # X-Scope-OrgID of Mimir, THANOS-TENANT …
    matcher: str = ""  # narrows every query: namespace="prod"
    timeout_s: float = 30.0
    n_tries: int = 4
    total_s: float = 300.0  # for all questions together, however slowly a server answers

    @property
    def retry_s(self) -> float:
        """Wait before the second try; each further wait is twice as long."""
        return min(1.0, self.timeout_s / 10.0)

    @property
    def public_url(self) -> str:
        """The address without the user and password that it may hold."""
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

    def __repr__(self) -> str:
        """Without secrets, so that no log or error can show them."""
        return f"ServerAccess({self.public_url!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindow:
    """A stretch of time, in seconds since 1970, and the step to sample it with."""

    begin_s: float
    end_s: float
    step_s: float

    @classmethod
    def until(cls, end_s: float, *, look_back_s: float, step_s: float) -> "TimeWindow":
        """The stretch of this length that ends at an instant."""
        return cls(begin_s=end_s - look_back_s, end_s=end_s, step_s=step_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSource:
    """A stretch of time on a monitoring server, read where a telemetry file could stand."""

    access: ServerAccess
    window: TimeWindow
