"""Published figures of image networks, from our table to nouns."""

import re
from functools import cache

from gpuplan.csv_rows import packaged_rows
from gpuplan.domain.model.network import Checkpoint, Embedding, LayerStack, Model
from gpuplan.domain.model.other import VisionNetwork
from gpuplan.domain.model.precision import FORMATS

# Much used ones of timm's benchmark, detectors and encoders by hand, the rest of that benchmark.
TABLES = ("timm.csv", "networks.csv", "timm_more.csv")
USUAL = TABLES[:2]
FLOP_PER_MAC = 2.0
SIZES = {"ti": "tiny", "s": "small", "b": "base", "l": "large", "h": "huge", "g": "giant"}
MIN_START = 4  # letters that a name must have to stand for those that begin so
OWNERS = {"microsoft", "google", "facebook", "timm", "ultralytics", "meta"}
MEGA, GIGA = 1e6, 1e9


@cache
def vision_networks(tables: tuple[str, ...] = TABLES) -> tuple[VisionNetwork, ...]:
    """Every image network of these tables, one entry per input size."""
    rows = (row for table in tables for row in packaged_rows("gpuplan.catalog", f"data/{table}"))
    return tuple(map(_network, rows))


def vision_named(name: str) -> tuple[VisionNetwork, ...]:
    """The image networks of this name, one of each picture size: `microsoft/resnet-50` too."""
    wanted = _plain(name)
    whole = tuple(n for n in vision_networks() if wanted in (_plain(n.name), _sized(n)))
    found = _with_words(name, USUAL) or _with_words(name)
    return whole or (found if len({network.name for network in found}) == 1 else ())


def nearest_vision(name: str, n: int = 3) -> list[str]:
    """Names of image networks that have every word typed: `yolov8`, `segment anything`."""
    return list(dict.fromkeys(network.name for network in _with_words(name)))[:n]


def _with_words(name: str, tables: tuple[str, ...] = TABLES) -> tuple[VisionNetwork, ...]:
    """Networks with every word typed and the fewest beside: `ViT-B/16`, `swin base`, `yolov8`."""
    words, start = _words(name), "".join(_words(name))
    found = [(n, _words(n.name.split(".", maxsplit=1)[0])) for n in vision_networks(tables)]
    retained = [(n, w) for n, w in found if words[:1] == w[:1] and {*words} <= {*w}]
    fewest = min((len(w) for _, w in retained), default=0)
    if retained or len(start) < MIN_START:
        return tuple(network for network, w in retained if len(w) == fewest)
    return tuple(n for n in vision_networks(tables) if _plain(n.name).startswith(start))


def _words(name: str) -> list[str]:
    """A name's words, sizes written out: b of `ViT-B/16` is base, and 16 its patch."""
    text = re.sub(r"segment[\s_-]*anything", "sam", name.lower().strip())
    text = re.sub(r"\bsam[\s_-]*2(?:\.1)?\b", "sam2", text)  # 2.1 is trained further
    pieces = [p for p in re.split(r"[^a-z0-9]+", re.sub(r"(?<=patch)(?=\d)", " ", text)) if p]
    return [SIZES.get(piece, piece) for piece in pieces if piece not in OWNERS]


def vision_model(name: str) -> Model | None:
    """An image network as a model: its parameters, without its layers; None: no such network."""
    network = next(iter(vision_named(name)), None)
    if network is None:
        return None
    stack = LayerStack(role="encoder", hidden_size=0, groups=(), n_other_params=network.n_params)
    return Model(
        name=network.name,
        kind="vision",
        architecture="image network",
        embedding=Embedding(n_vocab=0, n_input_params=0),
        stacks=(stack,),
        max_context_tokens=None,
        checkpoint=Checkpoint(base=FORMATS["fp16"]),
        source=network.source,
    )


def _plain(name: str) -> str:
    """A name without its owner, its weights and its separators."""
    return re.sub(r"[^a-z0-9]", "", name.rpartition("/")[2].split(".", maxsplit=1)[0].lower())


def _sized(network: VisionNetwork) -> str:
    """The name with the picture size at its end, as hubs write it."""
    return f"{_plain(network.name)}{network.image_px}"


def _network(row: dict[str, str]) -> VisionNetwork:
    return VisionNetwork(
        name=row["name"],
        n_params=round(float(row["params_m"]) * MEGA),
        flop_per_sample=float(row["gmacs"]) * GIGA * FLOP_PER_MAC,
        activation_elements=round(float(row["activations_m"]) * MEGA),
        image_px=int(row["image_px"]),
        source=row["source"],
    )
