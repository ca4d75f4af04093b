"""A model by the path of its `config.json`: found, read, or refused with what is wrong."""

import json
from collections.abc import Mapping
from pathlib import Path

from gpuplan.catalog.architectures.read import read_model
from gpuplan.domain.model.network import Model
from gpuplan.errors import InputError, Problem

MAX_CONFIG_BYTES = 32_000_000
PLACES = ("config.json", "transformer/config.json", "unet/config.json")


def config_path(text: str) -> Path | None:
    """The configuration that this path means; None: it is no path."""
    try:
        path = Path(text).expanduser()
    except RuntimeError:  # a home that nobody has
        return None
    try:
        if path.is_file():
            return path
        if path.is_dir():
            found = next((path / p for p in PLACES if (path / p).is_file()), None)
            if found is None:
                raise refused(text, "holds no config.json", f"put one there: {', '.join(PLACES)}")
            return found
    except OSError as error:
        raise refused(text, f"cannot be read ({error.strerror})", "check the path") from error
    if path.suffix == ".json":
        raise refused(text, "no such file", "check the path")
    return None


def from_file(path: Path) -> Model:
    """The model of this configuration, by the name of its folder."""
    name = path.parent.name if path.name == "config.json" else path.stem
    if path.parent.name in ("transformer", "unet"):
        name = path.parent.parent.name
    return read_model(_config(path), name=name or str(path), source=str(path))


def _config(path: Path) -> Mapping[str, object]:
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            raise refused(str(path), "is larger than any configuration", "give a config.json")
        config = json.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise refused(str(path), "cannot be read as text", "check the file") from error
    except (ValueError, RecursionError) as error:
        raise refused(str(path), "is not JSON", "give a config.json") from error
    if not isinstance(config, dict):
        raise refused(str(path), "holds no object", "give a config.json")
    return config


def refused(where: str, what: str, fix: str) -> InputError:
    """What is wrong with a name or a path of a model."""
    return InputError("model", [Problem(where or "model", what, fix)])
