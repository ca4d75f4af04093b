"""Which words name which accelerators, and which variant people usually mean by the bare word."""

import re

from gpuplan.domain.hardware.devices import AcceleratorId
from gpuplan.domain.noun import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Variants that share a word."""

    words: tuple[str, ...]
    ids: tuple[AcceleratorId, ...]
    usual: tuple[AcceleratorId, ...] = ()  # in order of preference; empty: never chosen for you
    why: str = ""
    also: tuple[str, ...] = ()  # variants that people mean and the catalog lacks
    noise: tuple[str, ...] = ()  # words that do not narrow this family down


def _family(
    words: str,
    ids: str,
    *,
    usual: str = "",
    why: str = "",
    also: tuple[str, ...] = (),
    noise: str = "",
) -> Family:
    return Family(
        words=tuple(words.split()),
        ids=tuple(AcceleratorId(i) for i in ids.split()),
        usual=tuple(AcceleratorId(i) for i in usual.split()),
        why=why,
        also=also,
        noise=tuple(noise.split()),
    )


_A100 = "a100-sxm-80gb a100-pcie-80gb a100-sxm-40gb a100-pcie-40gb"

FAMILIES: tuple[Family, ...] = (
    _family("t4", "t4"),
    _family(
        "v100",
        "v100-sxm2-16gb v100-sxm2-32gb v100-pcie-16gb v100-pcie-32gb",
        usual="v100-sxm2-16gb v100-sxm2-32gb",
        why="SXM2 is the usual form and 16 GB the usual size",
    ),
    _family("v100s", "v100s-pcie-32gb"),
    _family("a10", "a10"),
    _family("a10g", "a10g", noise="24g"),
    _family("a30", "a30"),
    _family("a40", "a40"),
    _family(
        "a100",
        _A100,
        usual=_A100,
        why="SXM is the usual form and 80 GB the usual size",
    ),
    _family("a16", "a16"),
    _family("a2", "a2"),
    _family("l4", "l4"),
    _family("l20", "l20"),
    _family("l40", "l40"),
    _family("l40s", "l40s"),
    _family("rtx3080 3080", "rtx-3080", noise="10gb"),
    _family("rtx3090 3090", "rtx-3090"),
    _family("rtxa4000 a4000", "rtx-a4000"),
    _family("rtxa5000 a5000", "rtx-a5000"),
    _family("rtxa6000 a6000", "rtx-a6000"),
    _family("rtx4090 4090", "rtx-4090"),
    _family("rtx5080 5080", "rtx-5080"),
    _family("rtx5090 5090", "rtx-5090"),
    _family("rtxpro4500", "rtx-pro-4500-bw", noise="blackwell bw edition"),
    _family("rtxpro5000", "rtx-pro-5000-bw", noise="blackwell bw edition"),
    _family("gb10 dgxspark spark", "gb10", noise="grace blackwell superchip dgx nvidia spark"),
    _family("7900xtx rx7900xtx", "rx-7900-xtx", noise="radeon"),
    _family("r9700", "r9700", noise="radeon ai pro"),
    _family("b60 arcb60", "arc-b60", noise="arc pro"),
    _family("rtx6000ada", "rtx-6000-ada", noise="generation"),
    _family("rtxpro6000se", "rtx-pro-6000-bw", noise="edition"),
    _family("rtxpro6000ws", "rtx-pro-6000-ws", noise="edition"),
    _family("rtxpro6000maxq", "rtx-pro-6000-maxq", noise="workstation edition"),
    _family(
        "rtxpro6000",
        "rtx-pro-6000-bw rtx-pro-6000-ws rtx-pro-6000-maxq",
        usual="rtx-pro-6000-bw",
        why="servers and clouds carry the Server Edition",
        noise="blackwell bw edition",
    ),
    _family(
        "rtx6000",
        "rtx-6000-ada rtx-pro-6000-bw quadro-rtx-6000",
    ),
    _family(
        "h100",
        "h100-sxm h100-pcie h100-nvl",
        usual="h100-sxm h100-pcie h100-nvl",
        why="SXM is the usual form",
    ),
    _family("h800", "h800-sxm"),
    _family(
        "h20",
        "h20 h20-141gb",
        usual="h20",
        why="the first H20 carries 96 GB",
    ),
    _family("h200", "h200-sxm h200-nvl", usual="h200-sxm", why="SXM is the usual form"),
    _family(
        "gh200",
        "gh200-96gb gh200-144gb",
        usual="gh200-96gb",
        why="most GH200 carry 96 GB of HBM3",
        noise="120gb 480gb grace hopper",
    ),
    _family("b200", "b200-sxm"),
    _family("b300", "b300-sxm"),
    _family("gb200", "gb200", noise="nvl72 nvl36 nvl4 nvl grace"),
    _family("gb300", "gb300", noise="nvl72 nvl grace"),
    _family(
        "vr200 r200 rubin",
        "vr200",
        noise="vera rubin nvl72 nvl144 nvl superchip r200",
    ),
    _family("mi455x mi455 mi450x mi450 mi400x mi400", "mi455x", noise="helios"),
    _family("mi210", "mi210"),
    _family("mi250x", "mi250x"),
    _family("mi250", "mi250"),
    _family("mi300x", "mi300x", noise="vf"),
    _family("mi300a", "mi300a"),
    _family(
        "mi300",
        "mi300x mi300a",
        usual="mi300x",
        why="MI300X is the accelerator without host cores",
    ),
    _family("mi325x mi325", "mi325x", noise="vf"),
    _family("mi350x mi350", "mi350x"),
    _family("mi355x mi355", "mi355x"),
    _family("gaudi2 hl225", "gaudi2", noise="hl225 hl225h hpu h"),
    _family("gaudi3 hl325", "gaudi3", noise="hl325 hl325l hpu l"),
    _family("pvc1550 pvc max1550", "pvc-1550", noise="data center 1550"),
    _family("tpuv4 v4", "tpu-v4"),
    _family("tpuv5e tpuv5lite v5e v5litepod v5lite", "tpu-v5e"),
    _family("tpuv5p v5p", "tpu-v5p"),
    _family("tpuv6e v6e trillium", "tpu-v6e", noise="trillium v6e tpu"),
    _family("tpuv7 tpu7 ironwood", "tpu-v7", noise="ironwood x tpu tpuv7"),
    _family("trainium1 trn1", "trainium1"),
    _family("trainium2 trn2", "trainium2"),
    _family("trainium3 trn3", "trainium3"),
    _family("inferentia2 inf2", "inferentia2"),
    _family("quadrortx6000", "quadro-rtx-6000"),
    _family("rtxa4500 a4500", "rtx-a4500"),
    _family("rtx4000ada", "rtx-4000-ada", noise="generation"),
    _family("rtx2000ada", "rtx-2000-ada", noise="generation"),
    _family("rtx5880ada", "rtx-5880-ada", noise="generation"),
    _family("rtxpro4000", "rtx-pro-4000-bw", noise="blackwell bw edition"),
    _family("rtx3060 3060", "rtx-3060"),
    _family("rtx3060ti 3060ti", "rtx-3060-ti"),
    _family("rtx3070 3070", "rtx-3070"),
    _family("rtx4060ti 4060ti", "rtx-4060-ti"),
    _family("rtx4070tisuper 4070tisuper", "rtx-4070-ti-super"),
    _family("rtx5070 5070", "rtx-5070"),
    _family("t4g", "t4g"),
    _family("m2ultra", "apple-m2-ultra", noise="apple mac studio"),
    _family("m3ultra", "apple-m3-ultra", noise="apple mac studio"),
    _family("m3max", "apple-m3-max", noise="apple mac studio macbook pro"),
    _family("m4max", "apple-m4-max", noise="apple mac studio macbook pro"),
    _family("m4pro", "apple-m4-pro", noise="apple mac mini macbook pro"),
    _family("grace", "cpu-grace", noise="cpu superchip"),
    _family("graviton4 graviton", "cpu-graviton4", noise="cpu c8g r8g m8g"),
    _family("epyc9654", "cpu-epyc-9654"),
    _family("epyc9755 epyc9005 turin", "cpu-epyc-9755", noise="amd"),
    _family("xeon6980p 6980p xeon6", "cpu-xeon-6980p", noise="6980p"),
    _family("xeon8480 8480", "cpu-xeon-8480", noise="platinum + plus c"),
    _family(
        "cpu",
        "cpu-xeon-8480 cpu-epyc-9654 cpu-epyc-9755 cpu-xeon-6980p",
        usual="cpu-xeon-8480",
        why="a Xeon with a matrix unit is what most CPU inference is measured on",
    ),
)
"""Every word that stands for accelerators of the catalog."""

NOISE = frozenset(
    {
        "nvidia",
        "tesla",
        "amd",
        "instinct",
        "intel",
        "google",
        "aws",
        "amazon",
        "geforce",
        "habana",
        "cloud",
        "gpu",
        "gpus",
        "accelerator",
        "card",
        "chip",
        "server",
        "dlc",
        "oam",
        "tensor",
        "core",
    }
)
"""Words that makers and tools put around a name."""

REWRITES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\bgrace[\s_-]*hopper\b", r"gh200"),
        (r"\bgrace[\s_-]*blackwell\b", r"gb200"),
        (r"\bv5[\s_-]+lite\b", r"v5lite"),
        (r"\bgaudi[\s_-]+(\d)", r"gaudi\1"),
        (r"\bhl-(\d)", r"hl\1"),
        (r"\btpu[\s_-]*v?(\d)", r"tpuv\1"),
        (r"\b(trainium|trn|inferentia|inf)[\s_-]+(\d)", r"\1\2"),
        (r"\bmi[\s_-]+(\d{3})", r"mi\1"),
        (
            r"\brtx[\s_-]*pro[\s_-]*6000(?:[\s_-]*(?:blackwell|bw))?[\s_-]*max[\s_-]*q\b",
            r"rtxpro6000maxq",
        ),
        (
            r"\brtx[\s_-]*pro[\s_-]*6000(?:[\s_-]*(?:blackwell|bw))?[\s_-]+(?:workstation|ws)\b",
            r"rtxpro6000ws",
        ),
        (
            r"\brtx[\s_-]*pro[\s_-]*6000(?:[\s_-]*(?:blackwell|bw))?[\s_-]+(?:server|se)\b",
            r"rtxpro6000se",
        ),
        (r"\brtx[\s_-]*pro[\s_-]*([456][05]00)\b", r"rtxpro\1"),
        (r"\bquadro[\s_-]*rtx[\s_-]*6000\b", r"quadrortx6000"),
        (r"\b(?:rtx[\s_-]*)?(2000|4000|5880)[\s_-]*ada", r"rtx\1ada"),
        (r"\b([345]0\d0)[\s_-]*ti(?:[\s_-]*(super))?\b", r"\1ti\2"),
        (r"\b(m[1-5])[\s_-]+(ultra|max|pro)\b", r"\1\2"),
        (r"\bdgx[\s_-]+spark\b", r"dgxspark"),
        (r"\b(?:rx[\s_-]*)?7900[\s_-]*xtx\b", r"7900xtx"),
        (r"\b(?:rtx[\s_-]*)?6000[\s_-]*ada", r"rtx6000ada"),
        (r"\brtx[\s_-]+(a?\d{4})", r"rtx\1"),
        (r"\b(?:max|pvc)[\s_-]+1550", r"pvc1550"),
        (r"\bepyc[\s_-]+(\d)", r"epyc\1"),
        (r"\bxeon[\s_-]+(?:platinum[\s_-]+)?(\d)", r"xeon\1"),
        (r"(\d)[\s_]+(gi?b?)\b", r"\1\2"),
    )
)
"""Spellings that are brought together before words are compared."""
