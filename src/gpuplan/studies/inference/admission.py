"""When requests join what an engine runs: what was asked for, or what its version does."""

from collections import Counter
from dataclasses import replace

from gpuplan.domain.inference.performance import ServingSetup
from gpuplan.domain.provenance import Assumption, assume
from gpuplan.domain.simulation.engine import (
    Admission,
    BlockRules,
    HybridPool,
    PrefillFirst,
    StageRules,
)
from gpuplan.domain.simulation.simulation import AdmissionRequest, EngineRequest, ReplicaRequest
from gpuplan.errors import InputError, one
from gpuplan.performance.memory.groups import has_windows
from gpuplan.performance.serving.sglang import MAX_PREFILL_TOKENS, sglang_version
from gpuplan.performance.serving.vllm import OTHERS, VllmVersion, vllm_version

SGLANG, VLLM = "sglang", "vllm"


def vllm_rules(setup: ServingSetup) -> VllmVersion:
    """The rules of the engine's version; those of other engines, which are simulated alike."""
    return vllm_version(setup.engine.version) if setup.engine.name == VLLM else OTHERS


def caches_prefixes(setup: ServingSetup, request: EngineRequest) -> bool:
    """Where asked for, else as the version does; fixed batches keep nothing between them."""
    if request.caches_prefixes is not None:
        return request.caches_prefixes
    return request.batching is None and (
        setup.engine.name == SGLANG or vllm_rules(setup).caches_prefixes
    )


def admission_of(
    setup: ServingSetup,
    request: EngineRequest,
    n_blocks: int = 0,
    hybrid: HybridPool | None = None,
) -> Admission:
    """What was asked for, else what this version does by itself."""
    if setup.engine.name == SGLANG and request.batching is None:
        if _most_adapters(setup) is not None:
            what = "a limit on adapters with SGLang"
            raise one(InputError, "simulate", "--max-loras", what, "use --engine vllm")
        return _sglang_admission(setup, request)
    rules, typed = vllm_rules(setup), request.admission
    # Not across stages, and not where batches are fixed.
    is_usual_ahead = rules.is_ahead and setup.layout.pp == 1 and request.batching is None
    return Admission(
        is_ahead=_or(typed.is_ahead, is_usual_ahead),
        reserves_prompt=_or(typed.reserves_prompt, rules.reserves_prompt),
        ends_by_eos=typed.ignores_eos is False,
        lone_prompt_is_whole=rules.lone_prompt_is_whole,
        chunks_prompts=typed.chunks_prompts,
        n_stages=setup.n_stages,
        stages=StageRules(
            fills_queue=rules.fills_queue,
            waits_for_late=rules.waits_for_late,
            keeps_turns=rules.keeps_turns,
        ),
        pads_decodes=rules.pads_decodes,
        max_adapters=_most_adapters(setup),
        blocks=replace(_block_rules(rules, typed, n_blocks), hybrid=hybrid),
    )


def _block_rules(rules: VllmVersion, typed: AdmissionRequest, n_blocks: int) -> BlockRules:
    """How blocks of the KV cache are given out; vLLM counts the null block among all."""
    return BlockRules(
        watermark_blocks=int((typed.watermark_frac or 0.0) * (n_blocks + 1)),
        reuses_bare_first=rules.reuses_bare_first,
        groups=typed.groups or (),
        caps_windows=rules.caps_windows,
        frees_windows_late=rules.frees_windows_late,
    )


def _most_adapters(setup: ServingSetup) -> int | None:
    """LoRA adapters of one iteration, where there is not room for all of them."""
    use, slots = setup.load.adapters, setup.settings.lora
    is_short = use is not None and slots is not None and slots.n_slots < use.n_adapters
    return slots.n_slots if is_short and slots else None


def _or(requested: bool | None, usual: bool) -> bool:
    return usual if requested is None else requested


def _sglang_admission(setup: ServingSetup, request: EngineRequest) -> Admission:
    """SGLang's scheduler with what its version does by default, unless asked otherwise."""
    version = sglang_version(setup.engine.version)
    is_usual = request.scheduling == "fcfs" and version.is_longest_first
    rules = PrefillFirst(
        chunk_tokens=setup.settings.max_batch_tokens,
        max_prefill_tokens=MAX_PREFILL_TOKENS,
        is_longest_first=request.scheduling == "lpm" or is_usual,
        max_tokens=(request.replica or ReplicaRequest()).max_tokens,
        ignores_eos=request.admission.ignores_eos,
        knows_ends=version.knows_ends,
    )
    # Stages switch the overlap off.
    is_ahead = _or(request.admission.is_ahead, version.is_ahead and setup.layout.pp == 1)
    return Admission(is_ahead=is_ahead, prefill_first=rules)


def _assumed_sglang(setup: ServingSetup, rules: PrefillFirst) -> list[Assumption]:
    """Whose rules requests are scheduled by, and what they are taken to ask for."""
    order = "longest prefix first" if rules.is_longest_first else "first come, first served"
    value = f"prompts first, in batches of {rules.chunk_tokens or 0} tokens; {order}"
    why = f"SGLang {setup.engine.version} by default [SGLang-scheduler]"
    change = "--max-num-batched-tokens, --scheduling-policy"
    found = [assume("SGLang's scheduler", value, why, change)]
    if rules.max_tokens is None:
        value = "what each request gets, with ignore_eos, unless a trace says more"
        why = "as benchmarks ask; SGLang reserves what is asked for, so more lets fewer in"
        found.append(assume("max_tokens", value, why, "--max-tokens"))
    return found


def assumed_admission(
    setup: ServingSetup, admission: Admission, request: EngineRequest
) -> list[Assumption]:
    """Each rule that nobody asked for, with the flag that changes it."""
    if admission.prefill_first is not None:
        return _assumed_sglang(setup, admission.prefill_first)
    if request.batching is not None:
        return []
    typed, engine = request.admission, f"{setup.engine.name} {setup.engine.version}".strip()
    notes = [*_reported(admission, typed), *_version_notes(admission, request)]
    if typed.groups is None and has_windows(setup.model):
        notes.append(("layers with a window", _layers_told(admission.blocks.hybrid), "--kv-groups"))
    return [assume(what, value, f"{engine}'s own rule", change) for what, value, change in notes]


def _reported(admission: Admission, typed: AdmissionRequest) -> list[tuple[str, str, str]]:
    """Rules that have a flag: what, value, flag."""
    found = []
    if typed.is_ahead is None:
        ahead = "who comes while an iteration runs joins the next but one"
        value = ahead if admission.is_ahead else "off: an iteration is drawn up when one has ended"
        flag = "--no-async-scheduling" if admission.is_ahead else "--async-scheduling"
        found.append(("scheduling ahead", value, flag))
    if typed.reserves_prompt is None:
        value = "the whole prompt" if admission.reserves_prompt else "its next chunk alone"
        flag = "--no-reserve-full-isl" if admission.reserves_prompt else "--reserve-full-isl"
        found.append(("blocks that an admission needs", value, flag))
    if typed.ignores_eos is None and admission.is_ahead:
        value = "at the requested length (max_tokens), as benchmarks ask with ignore_eos"
        found.append(("ends of responses", value, "--no-ignore-eos"))
    return found


def _layers_told(hybrid: HybridPool | None) -> str:
    """How blocks of layers that keep less than the whole context are counted."""
    if hybrid is None:
        return "as equal layers whose blocks hold as many requests of mean length"
    kinds = Counter(f"{g.kind}:{g.tokens}" if g.tokens else g.kind for g in hybrid.groups)
    groups = ",".join(f"{kind}x{n}" if n > 1 else kind for kind, n in kinds.items())
    return f"groups {groups} of {hybrid.n_layers} layers share {hybrid.n_blocks} blocks"


def _version_notes(admission: Admission, request: EngineRequest) -> list[tuple[str, str, str]]:
    """Rules that only another version changes, where they matter."""
    if request.long_prefill_tokens is None:
        return []
    value = "not cut" if admission.lone_prompt_is_whole else "cut like any other"
    return [("a long prompt that is alone", value, "--engine-version")]
