"""A live Prometheus-compatible server: range queries in parts, with patience and with limits."""

import contextlib
import math
import socket
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gpuplan.domain.telemetry.monitoring import ServerAccess, TimeWindow
from gpuplan.domain.telemetry.observation import Telemetry
from gpuplan.errors import CatalogError, InputError, one
from gpuplan.observe.collect import Collector
from gpuplan.observe.exposition import json_samples
from gpuplan.observe.guard import clean, guarded, json_document, sequence
from gpuplan.observe.names import HISTOGRAMS, PROMETHEUS, QUOTIENTS
from gpuplan.observe.samples import Sample, take_samples

if TYPE_CHECKING:
    import httpx

MAX_POINTS = 10_000  # of one series in one answer; servers refuse more than 11,000
MAX_ANSWER_BYTES = 2**28
_BUSY = (429, 502, 503, 504)


def read_prometheus(access: ServerAccess, window: TimeWindow) -> Telemetry:
    """Every metric of the vocabulary that the server holds for this stretch of time."""
    httpx = _library()
    _check(access, window)
    source = access.public_url
    collector = Collector(source, "Prometheus server")
    with guarded(source), Deadline(source, access.total_s) as deadline:
        _read(_client(httpx, access, deadline), access, window, collector)
    return collector.finish()


def _read(
    opened: "httpx.Client", access: ServerAccess, window: TimeWindow, collector: Collector
) -> None:
    with opened as client:
        names = sorted(set(_names(client, access, collector)) & _wanted())
        take_samples(collector, _samples(client, access, window, names=names, collector=collector))


def _wanted() -> set[str]:
    parts = {f"{name}_{part}" for name in HISTOGRAMS for part in ("bucket", "sum", "count")}
    return {*PROMETHEUS, *QUOTIENTS, *parts}


def _library() -> Any:
    try:
        import httpx  # noqa: PLC0415
    except ImportError as error:
        fix = "install gpuplan[observe]"
        raise one(InputError, "observe", "httpx", "is not installed", fix) from error
    return httpx


def _check(access: ServerAccess, window: TimeWindow) -> None:
    parts = urlsplit(access.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        fix = "use http://HOST:PORT or https://…"
        raise one(InputError, "observe", "url", f"got {access.public_url!r}", fix)
    if not window.begin_s < window.end_s or window.step_s <= 0:
        what = f"from {window.begin_s:.0f} to {window.end_s:.0f} in steps of {window.step_s:g} s"
        raise one(InputError, "observe", "window", what, "let it begin before it ends")


class Deadline:
    """An end for all questions together: connections are cut, whatever a server drips."""

    def __init__(self, source: str, total_s: float) -> None:
        self._what, self._is_over = f"{source} took longer than {total_s:g} s in total", False
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(total_s, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> "Deadline":
        self._timer.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        self._timer.cancel()
        if self._is_over and error is not None:
            fix = "ask for fewer series (--matcher), a shorter window or a longer step"
            raise one(CatalogError, "observe", "monitoring server", self._what, fix) from error

    def sent(self, request: "httpx.Request") -> None:
        """Look at the connections of a request, from the client's hook."""
        request.extensions["trace"] = self._traced

    def _traced(self, event: str, found: dict[str, Any]) -> None:
        stream = found.get("return_value") if event == "connection.connect_tcp.complete" else None
        if stream is not None:
            self._sockets.append(stream.get_extra_info("socket"))

    def _cut(self) -> None:
        self._is_over = True
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def _client(httpx: Any, access: ServerAccess, deadline: Deadline) -> "httpx.Client":
    headers = dict(access.headers)
    if access.token:
        headers["Authorization"] = f"Bearer {access.token}"
    verify: Any = True
    if access.ca_file or access.client_cert[0]:
        import ssl  # noqa: PLC0415

        verify = ssl.create_default_context(cafile=access.ca_file or None)
        cert_file, key_file = access.client_cert
        if cert_file:
            verify.load_cert_chain(cert_file, key_file or None)
    auth = (access.user, access.password) if access.user else None
    return httpx.Client(  # type: ignore[no-any-return]
        base_url=access.url.rstrip("/"),
        headers=headers,
        auth=auth,
        verify=verify,
        timeout=access.timeout_s,
        follow_redirects=False,
        event_hooks={"request": [deadline.sent]},
    )


def _names(client: "httpx.Client", access: ServerAccess, collector: Collector) -> list[str]:
    answer = _ask(client, access, "/api/v1/label/__name__/values", {}, collector)
    return [str(name) for name in sequence(answer.get("data"))]


def _samples(
    client: "httpx.Client",
    access: ServerAccess,
    window: TimeWindow,
    *,
    names: list[str],
    collector: Collector,
) -> Iterator[Sample]:
    for name in names:
        for begin_s, end_s in _parts(window):
            question = {
                "query": name if not access.matcher else f"{name}{{{access.matcher}}}",
                "start": f"{begin_s:.3f}",
                "end": f"{end_s:.3f}",
                "step": f"{window.step_s:g}",
            }
            answer = _ask(client, access, "/api/v1/query_range", question, collector)
            yield from json_samples(answer, collector)


def _parts(window: TimeWindow) -> Iterator[tuple[float, float]]:
    """Stretches on whole steps, so that answers meet without gap or overlap."""
    step_s = window.step_s
    begin_s = math.floor(window.begin_s / step_s) * step_s
    while begin_s <= window.end_s:
        end_s = min(begin_s + (MAX_POINTS - 1) * step_s, window.end_s)
        yield begin_s, end_s
        begin_s += MAX_POINTS * step_s


def _ask(
    client: "httpx.Client",
    access: ServerAccess,
    path: str,
    question: dict[str, str],
    collector: Collector,
) -> dict[str, Any]:
    """An answer, after as many tries as allowed; each wait is twice the one before."""
    why = ""
    for attempt in range(access.n_tries):
        if attempt:
            collector.quirk("the server had to be asked again", f"{path}: {why}", "asked again")
            time.sleep(access.retry_s * 2 ** (attempt - 1))
        done, why = _try(client, path, question)
        if done is not None:
            return done
    fix = "is it running, and is the address right?"
    raise one(CatalogError, client.base_url.host, "monitoring server", why, fix)


def _try(
    client: "httpx.Client", path: str, question: dict[str, str]
) -> tuple[dict[str, Any] | None, str]:
    import httpx  # noqa: PLC0415

    try:
        with client.stream("GET", path, params=question) as answer:
            if answer.status_code in _BUSY:
                return None, f"status {answer.status_code}"
            body = _body(answer)
            status = answer.status_code
    except httpx.HTTPError as error:
        return None, clean(f"{type(error).__name__}: {error}")
    if status in (401, 403):
        fix = "give a token, a user or a certificate"
        raise one(InputError, "observe", "access", f"refused with status {status}", fix)
    try:
        document = json_document(body)
    except ValueError:
        return None, f"status {status} and no JSON"
    if not isinstance(document, dict):
        return None, "an answer of another kind"
    if status >= 400 or document.get("status") == "error":
        what = clean(document.get("error", f"status {status}"))
        raise one(InputError, "observe", "query", what, "ask for less, or fix the matcher")
    return document, ""


def _body(answer: "httpx.Response") -> bytes:
    found = bytearray()
    for chunk in answer.iter_bytes():
        found += chunk
        if len(found) > MAX_ANSWER_BYTES:
            fix = "ask for fewer series (--matcher) or a longer step"
            raise one(InputError, "observe", "answer", "larger than 256 MiB", fix)
    return bytes(found)
