"""A plan as a download: its own document, the report, or files for other tools."""

import io
import json
import zipfile
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

import yaml
from fastapi import Response

from gpuplan.server.rest.answers import RefusalError
from gpuplan.server.rest.door import Door
from gpuplan.server.web.planned import WAIT_S

KINDS = {
    "yaml": "application/yaml",
    "json": "application/json",
    "html": "text/html",
    "csv": "text/csv",
    "md": "text/markdown",
    "zip": "application/zip",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
STAMP = (2026, 1, 1, 0, 0, 0)  # the same plan gives the same bytes


async def exported(door: Door, owner: str, plan: Mapping[str, Any], target: str) -> Response:
    """The download of a target: the plan, its report, or one of `gpuplan render`."""
    if target == "plan.json":
        return _download(target, json.dumps(plan, indent=1).encode())
    if target == "plan.yaml":
        text = yaml.safe_dump(dict(plan), sort_keys=False, allow_unicode=True)
        return _download(target, text.encode())
    if target == "report":
        found = await _requested(door, owner, "report", {"plan": plan})
        return _download("plan.html", found["html"].encode())
    verb, to = "render", target
    if target.startswith("report."):
        verb, to = "report", target.removeprefix("report.")
    found = await _requested(door, owner, verb, {"plan": plan, "to": to})
    made = [(each["path"], b64decode(each["base64"])) for each in found["files"]]
    if len(made) == 1:
        return _download(made[0][0].rpartition("/")[2], made[0][1])
    return _download(f"{target}.zip", _zipped(made))


async def _requested(door: Door, owner: str, verb: str, body: Mapping[str, Any]) -> Any:
    job = await door.ask(owner, verb, body, 4 * WAIT_S)
    if job.error:
        error = json.loads(job.error)
        raise RefusalError(422, error["code"], error["message"])
    if not job.result:
        raise RefusalError(503, "waiting", "it takes long: try again in a moment", Retry_After="5")
    return json.loads(job.result)


def _zipped(made: list[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in made:
            archive.writestr(zipfile.ZipInfo(path, STAMP), content)
    return buffer.getvalue()


def _download(name: str, content: bytes) -> Response:
    kind = KINDS.get(name.rpartition(".")[2], "text/plain")
    safe = "".join(c if c.isalnum() or c in "._-" else "-" for c in name)
    head = {"Content-Disposition": f'attachment; filename="{safe}"'}
    return Response(content, media_type=kind, headers=head)
