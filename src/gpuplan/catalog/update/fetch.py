"""Bytes from the network, in: an address and limits; out: the whole body, or the reason why not.

Nothing that a server sends is trusted: size and total time are bounded, redirects stay on the
allowed host, compressed bodies are refused, and plain http is for the own machine only.
"""

import asyncio
import ipaddress
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urljoin, urlsplit

from gpuplan.errors import InputError, one

if TYPE_CHECKING:
    import httpx

MAX_REDIRECTS = 3
REDIRECTS = frozenset({301, 302, 303, 307, 308})
OK = 200
NOT_FOUND = 404
DENIED = frozenset({401, 403})
HEADERS = {"Accept-Encoding": "identity", "User-Agent": "gpuplan"}
PORTS = {"https": 443, "http": 80}


class FetchError(Exception):
    """The body could not be had; says what was tried and what came back."""

    def __init__(self, url: str, why: str, *, status: int | None = None) -> None:
        self.url = url
        self.why = why
        self.is_missing = status == NOT_FOUND
        self.is_denied = status in DENIED
        super().__init__(f"{url}: {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a server may send and how long it may take, all in all."""

    max_bytes: int
    total_s: float = 60.0
    connect_s: float = 10.0


def fetch_bytes(url: str, limits: Limits) -> bytes:
    """The body at the address; FetchError tells why not."""
    _require_httpx()
    _check_address(urlsplit(url), url)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_within(url, limits))
    # The caller runs inside an event loop of its own: ours needs another thread.
    with ThreadPoolExecutor(max_workers=1) as worker:
        return worker.submit(asyncio.run, _within(url, limits)).result()


def _require_httpx() -> None:
    if find_spec("httpx") is None:
        raise one(
            InputError,
            "catalog update",
            "httpx",
            "not installed",
            'run pip install "gpuplan[online]"',
        )


def check_base_url(base_url: str) -> None:
    """Refuse an address that is neither https nor on this machine."""
    try:
        _check_address(urlsplit(base_url), base_url)
    except (FetchError, ValueError) as error:
        raise one(
            InputError,
            "catalog update",
            "base_url",
            str(error),
            "give an https address, or http on localhost",
        ) from None


def _check_address(parts: SplitResult, url: str) -> None:
    host = parts.hostname or ""
    if not host or parts.username is not None:
        raise FetchError(url, "no plain host in the address")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        raise FetchError(url, f"refused: {parts.scheme or 'no'} scheme, https is required")


def is_loopback(host: str) -> bool:
    """Whether the host is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _within(url: str, limits: Limits) -> bytes:
    """All of it, headers and redirects too, within the total time: a slow drip ends as well."""
    import httpx  # an optional extra, and slow to import

    try:
        async with asyncio.timeout(limits.total_s):
            return await _follow(url, limits)
    except TimeoutError:
        raise FetchError(url, f"not finished within {limits.total_s:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise FetchError(url, f"{type(error).__name__}: {error}".rstrip(": ")) from error


async def _follow(url: str, limits: Limits) -> bytes:
    import httpx

    origin = _origin(urlsplit(url))
    timeout = httpx.Timeout(limits.total_s, connect=min(limits.connect_s, limits.total_s))
    # Proxies of the environment are for the outside; they cannot reach this machine.
    uses_proxy = not is_loopback(origin[1])
    is_secure = origin[0] == "https"  # without it there is no certificate to check
    async with httpx.AsyncClient(timeout=timeout, trust_env=uses_proxy, verify=is_secure) as client:
        for _ in range(MAX_REDIRECTS + 1):
            async with client.stream("GET", url, headers=HEADERS) as response:
                if response.status_code not in REDIRECTS:
                    return await _body(response, url, limits)
                url = _target(url, response.headers.get("location", ""), origin)
    raise FetchError(url, f"more than {MAX_REDIRECTS} redirects")


def _origin(parts: SplitResult) -> tuple[str, str, int | None]:
    return parts.scheme, parts.hostname or "", parts.port or PORTS.get(parts.scheme)


def _target(url: str, location: str, origin: tuple[str, str, int | None]) -> str:
    try:
        target = urljoin(url, location)
        same = _origin(urlsplit(target)) == origin
    except ValueError:
        target, same = "", False
    if not location or not same:
        raise FetchError(url, f"refused: redirect to {location[:80]!r}, another host or scheme")
    return target


async def _body(response: "httpx.Response", url: str, limits: Limits) -> bytes:
    status = response.status_code
    if status != OK:
        why = f"status {status}" + (": access is restricted" if status in DENIED else "")
        raise FetchError(url, why, status=status)
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        raise FetchError(url, f"refused: body compressed with {coding[:20]!r}, unasked")
    announced = response.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > limits.max_bytes:
        raise FetchError(url, f"refused: {announced} bytes announced, {limits.max_bytes} allowed")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > limits.max_bytes:
            raise FetchError(url, f"refused: more than {limits.max_bytes} bytes")
    return bytes(body)
