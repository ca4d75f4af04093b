"""Who may ask, how often, and how much: tokens, rates, sizes, headers."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from time import monotonic

from gpuplan.errors import InputError, one

LOCAL = "local"
TOKEN_COOKIE = "gpuplan_token"
# Scripts, styles and pictures are this server's own; nothing runs that stands within a page.
CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        *(f"{kind}-src 'self'" for kind in ("script", "style", "connect", "manifest")),
        "img-src 'self' data:",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # without one a browser hides the origin of forms
    "Content-Security-Policy": CONTENT_POLICY,
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Rules of one server."""

    owners: Mapping[str, str] = field(default_factory=dict)  # digest of a token → its owner
    requests_per_s: float = 50.0  # of one owner, in the long run
    burst: int = 400  # and at once
    max_body_bytes: int = 10_000_000
    max_waiting: int = 1_000  # jobs of one owner

    def owner_of(self, authorization: str | None) -> str | None:
        """Whose token it is; None: nobody's. Without tokens everybody is the local user."""
        if not self.owners:
            return LOCAL
        kind, _, token = (authorization or "").partition(" ")
        if kind.lower() != "bearer":
            return None
        given = _digest(token.strip())
        found = [name for known, name in self.owners.items() if hmac.compare_digest(known, given)]
        return found[0] if found else None


def _digest(token: str) -> str:
    return sha256(token.encode()).hexdigest()


def read_tokens(path: Path) -> dict[str, str]:
    """Owners by the digest of their token; a line of the file is `owner token`."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise one(InputError, str(path), "tokens", str(error), "name a text file") from None
    rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    if not rows or any(len(row) != 2 for row in rows):
        what, fix = "is no list of tokens", "write `owner token` on each line"
        raise one(InputError, str(path), "tokens", what, fix)
    return {_digest(token): owner for owner, token in rows}


def refuse_open(host: str, access: Access) -> None:
    """Raise InputError where a server would answer strangers."""
    if access.owners or _is_loopback(host):
        return
    fix = "give --tokens, or listen on 127.0.0.1"
    raise one(InputError, "serve", "--host", f"{host} is open to others without a token", fix)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Rates:
    """A bucket for each owner: full at first, refilled at the rate."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._left: dict[str, tuple[float, float]] = {}

    def allows(self, owner: str) -> bool:
        """Whether the owner may ask now; counts the question."""
        now = monotonic()
        left, at = self._left.get(owner, (float(self._access.burst), now))
        left = min(self._access.burst, left + (now - at) * self._access.requests_per_s)
        is_allowed = left >= 1.0
        self._left[owner] = (left - 1.0 if is_allowed else left, now)
        return is_allowed
