"""Phrases as people write them, and the keys of the scenario that they must become."""

import pytest

W = "workloads.0."
CHAT = "Qwen3-32B, chat, "  # before phrases that need a service
RUN = "Llama-3.1-8B, "  # before phrases that need a run

# Phrases of a service that has a model and no load of its own.
LOADS = [
    ("6000 users", "demand.users", 6000),
    ("6k users", "demand.users", 6000),
    ("1,200 users", "demand.users", 1200),
    ("for 300 engineers", "demand.users", 300),
    ("about 2 million people", "demand.users", 2_000_000),
    ("our 450 employees", "demand.users", 450),
    ("10,000 daily active users", "demand.users", 10_000),
    ("1,500 chat users", "demand.users", 1500),
    ("300 paying RAG customers", "demand.users", 300),
    ("40k daily active users, each about 12 messages a day", "demand.requests_per_day", 480_000),
    ("2,000 users, 30 requests per user per day", "demand.requests_per_day", 60_000),
    ("900 developers, each sending 6 requests an hour", "demand.requests_per_user_per_h", 6),
    ("100 concurrent users thinking 20 s between turns", "request.think_time_s", 20),
    ("500 concurrent users", "demand.concurrent_requests", 500),
    ("500 concurrent users", "request.think_time_s", 30),
    ("500 simultaneous conversations", "request.think_time_s", 30),
    ("500 concurrent users, 12 requests per user per hour", "demand.users", 500),
    ("500 concurrent users, 12 requests per user per hour", "demand.active_frac", 1),
    ("200 concurrent requests", "demand.concurrent_requests", 200),
    ("concurrency of 64", "demand.concurrent_requests", 64),
    ("64 parallel requests", "demand.concurrent_requests", 64),
    ("300 coding agents", "demand.concurrent_requests", 300),
    ("5 requests/s", "demand.requests_per_s", 5),
    ("5 requests per second", "demand.requests_per_s", 5),
    ("12 rps", "demand.requests_per_s", 12),
    ("1 request every 10 seconds", "demand.requests_per_s", 0.1),
    ("three requests every two minutes", "demand.requests_per_s", 0.025),
    ("one request per minute", "demand.requests_per_s", 1 / 60),
    ("100 concurrent", "demand.concurrent_requests", 100),
    ("50 requests/s by day, 5 at night", "demand.requests_per_s", 50),
    ("50 requests/s by day, 5 at night", "demand.hourly_profile.3", 0.1),
    ("50 requests/s by day, 5 at night", "demand.hourly_profile.12", 1.0),
    ("12 QPS", "demand.requests_per_s", 12),
    ("90 requests a minute", "demand.requests_per_s", 1.5),
    ("120 rpm", "demand.requests_per_s", 2),
    ("5,000/s", "demand.requests_per_s", 5000),
    ("7200 queries per hour", "demand.requests_per_s", 2),
    ("2M requests/day", "demand.requests_per_day", 2_000_000),
    ("2 million requests per day", "demand.requests_per_day", 2_000_000),
    ("700k messages a week", "demand.requests_per_day", 100_000),
    ("1M tokens/s", "demand.output_tokens_per_s", 1_000_000),
    ("throughput of 5k output tokens per second", "demand.output_tokens_per_s", 5000),
    ("50k tps", "demand.output_tokens_per_s", 50_000),
]

# Phrases beside "Qwen3-32B, chat, 10 users".
SERVICE = [
    ("20% active", "demand.active_frac", 0.2),
    ("answers should start within a second", "slo.ttft_p95_ms", 1000),
    ("responses begin in 700 ms", "slo.ttft_p95_ms", 700),
    ("each in under half a second", "slo.e2e_p95_s", 0.5),
    ("5 % of them are active", "demand.active_frac", 0.05),
    ("10 requests per user per hour", "demand.requests_per_user_per_h", 10),
    ("6 requests/h per user", "demand.requests_per_user_per_h", 6),
    ("peak 3x", "demand.peak_to_mean", 3),
    ("peak is 4 times the mean", "demand.peak_to_mean", 4),
    ("peak-to-mean 2.5", "demand.peak_to_mean", 2.5),
    ("24/7", "demand.peak_to_mean", 1),
    ("4k in 1k out", "request.input_tokens", 4000),
    ("4k in, 1k out", "request.output_tokens", 1000),
    ("2200/350 tokens", "request.input_tokens", 2200),
    ("2200/350", "request.output_tokens", 350),
    ("1k out", "request.output_tokens", 1000),
    ("ISL 4000 OSL 1000", "request.input_tokens", 4000),
    ("isl=512, osl=128", "request.output_tokens", 128),
    ("input 3k, output 500", "request.output_tokens", 500),
    ("2000 input and 500 output tokens", "request.input_tokens", 2000),
    ("prompts of 3000 tokens", "request.input_tokens", 3000),
    ("1500-token prompts", "request.input_tokens", 1500),
    ("answers of 700 tokens", "request.output_tokens", 700),
    ("300 token responses", "request.output_tokens", 300),
    ("30k context", "request.input_tokens", 30_000),
    ("with a context of 16k tokens", "request.input_tokens", 16_000),
    ("max context 128k", "max_context_tokens", 128_000),
    ("90% prefix cache hit rate", "request.prefix_hit_frac", 0.9),
    ("80 % cached", "request.prefix_hit_frac", 0.8),
    ("cache hit rate 75%", "request.prefix_hit_frac", 0.75),
    ("8 turns each", "request.turns", 8),
    ("30 s think time", "request.think_time_s", 30),
    ("TTFT p95 < 1 s", "slo.ttft_p95_ms", 1000),
    ("ttft 1.5 s", "slo.ttft_p95_ms", 1500),
    ("p95 TTFT under 500ms", "slo.ttft_p95_ms", 500),
    ("TTFT p99 ≤ 800 ms", "slo.ttft_p99_ms", 800),
    ("median TTFT of 300 ms", "slo.ttft_p50_ms", 300),
    ("time to first token below 2 seconds", "slo.ttft_p95_ms", 2000),
    ("first token within 1 s", "slo.ttft_p95_ms", 1000),
    ("TPOT 40 ms", "slo.tpot_p95_ms", 40),
    ("tpot p99 60ms", "slo.tpot_p99_ms", 60),
    ("mean TPOT 30 ms", "slo.tpot_mean_ms", 30),
    ("ITL 25 ms", "slo.itl_p95_ms", 25),
    ("inter-token latency below 50 ms", "slo.itl_p95_ms", 50),
    ("50 tokens/s per user", "slo.tpot_p95_ms", 20),
    ("25 tok/s/user", "slo.tpot_p95_ms", 40),
    ("E2E p95 10 s", "slo.e2e_p95_s", 10),
    ("latency under 2 s", "slo.e2e_p95_s", 2),
    ("p99 latency < 500 ms", "slo.e2e_p99_s", 0.5),
    ("p95 200 ms", "slo.e2e_p95_s", 0.2),
    ("respond within 3 seconds", "slo.e2e_p95_s", 3),
    ("99.9% availability", "slo.availability_frac", 0.999),
    ("uptime of 99.5 %", "slo.availability_frac", 0.995),
    ("FP8", "precision", "fp8"),
    ("in bf16", "precision", "bf16"),
    ("int4 quantization", "precision", "int4"),
    ("fp8 KV cache", "kv_precision", "fp8"),
    ("TP4", "layout.tp", 4),
    ("pp=2", "layout.pp", 2),
]

# Terms beside "Qwen3-32B, chat, 10 users"; keys of the scenario itself.
TERMS = [
    ("on H100", "policy.accelerators.allowed", ["H100"]),
    ("on H100 or MI300X", "policy.accelerators.allowed", ["H100", "MI300X"]),
    ("L4, L40S or A10G", "policy.accelerators.allowed", ["L4", "L40S", "A10G"]),
    ("using H100s", "policy.accelerators.allowed", ["H100"]),
    ("on RTX 4090", "policy.accelerators.allowed", ["RTX 4090"]),
    ("on two RTX 4090", "policy.max_accelerators", 2),
    ("on a single H100", "policy.max_accelerators", 1),
    ("on consumer cards", "policy.accelerators.allowed", ["RTX 3090", "RTX 4090", "RTX 5090"]),
    ("A100 80GB only", "policy.accelerators.allowed", ["A100 80GB"]),
    ("TPU only", "policy.accelerators.allowed", ["TPU"]),
    ("on AMD", "policy.accelerators.allowed", ["AMD"]),
    ("not on H100", "policy.accelerators.forbidden", ["H100"]),
    ("no TPUs", "policy.accelerators.forbidden", ["TPU"]),
    ("on 8xH200", "policy.max_accelerators", 8),
    ("up to 16 H100", "policy.max_accelerators", 16),
    ("at most 32 GPUs", "policy.max_accelerators", 32),
    ("on AWS", "policy.clouds.allowed", ["aws"]),
    ("on AWS or Google Cloud", "policy.clouds.allowed", ["aws", "gcp"]),
    ("in Azure", "policy.clouds.allowed", ["azure"]),
    ("not on AWS", "policy.clouds.forbidden", ["aws"]),
    ("in Europe", "policy.regions.allowed", ["EU"]),
    ("EU only", "policy.regions.allowed", ["EU"]),
    ("in the US", "policy.regions.allowed", ["USA"]),
    ("in US", "policy.regions.allowed", ["USA"]),
    ("in Germany", "policy.regions.allowed", ["DEU"]),
    ("spot", "policy.spot_allowed", True),
    ("with spot instances", "policy.spot_allowed", True),
    ("preemptible is ok", "policy.spot_allowed", True),
    ("no spot", "policy.spot_allowed", False),
    ("on-demand only", "policy.purchases", ["on_demand"]),
    ("reserved", "policy.purchases", ["reserved"]),
    ("on premises", "policy.purchases", ["owned"]),
    ("on-prem", "policy.purchases", ["owned"]),
    ("n+1", "policy.survive", "replica"),
    ("survive a node", "policy.survive", "node"),
    ("survives the loss of a rack", "policy.survive", "rack"),
    ("highly available", "policy.survive", "replica"),
    ("max 70% utilization", "policy.max_utilization_frac", 0.7),
    ("budget $20k/month", "budget.usd_per_month", 20_000),
    ("$2000 per month", "budget.usd_per_month", 2000),
    ("under 5k USD a month", "budget.usd_per_month", 5000),
    ("$240k per year", "budget.usd_per_month", 20_000),
    ("budget of 8000 a month", "budget.usd_per_month", 8000),
    ("€500/month", "budget.usd_per_month", 584.2),
    ("under £20,000 a month", "budget.usd_per_month", 26_841.88),
    ("budget 3000 euros per month", "budget.usd_per_month", 3505.2),
    ("is it cheaper to buy or rent", "policy.purchases", ["on_demand", "reserved", "owned"]),
    ("renting vs buying", "policy.purchases", ["on_demand", "reserved", "owned"]),
    ("bought hardware", "policy.purchases", ["owned"]),
    ("$1M capex", "budget.capex_usd", 1_000_000),
    ("horizon of 2 years", "budget.horizon_months", 24),
    ("growth 10%/month", "growth.per_month_frac", 0.1),
    ("growing 5% per month", "growth.per_month_frac", 0.05),
    ("10% monthly growth", "growth.per_month_frac", 0.1),
    ("load doubles in a year", "growth.per_month_frac", 0.059463),
    ("doubling every 6 months", "growth.per_month_frac", 0.122462),
    ("traffic grows 3x in 2 years", "growth.per_month_frac", 0.046839),
    ("lead time of 16 weeks", "growth.lead_time_weeks", 16),
    ("50 kW", "site.power_kw", 50),
    ("power limit of 2 MW", "site.power_kw", 2000),
    ("4 racks", "site.racks", 4),
    ("PUE 1.3", "site.pue", 1.3),
    ("electricity at $0.12/kWh", "site.electricity_usd_per_kwh", 0.12),
    ("greenest", "objective", "carbon"),
]

# Phrases of a run: "Llama-3.1-8B, " before them.
RUNS = [
    ("fine-tune with LoRA, 50M tokens, in 2 days", "training.method", "lora"),
    ("LoRA, 50M tokens", "training.tokens", 5e7),
    ("QLoRA on 20M tokens", "training.method", "qlora"),
    ("full fine-tuning, 1B tokens", "training.method", "full"),
    ("finetune on 100k samples", "training.samples", 100_000),
    ("SFT on 20k examples, 3 epochs", "training.epochs", 3),
    ("LoRA rank 64, 1M tokens", "training.lora_rank", 64),
    ("fine-tune, 5M tokens this weekend", "training.deadline_days", 2),
    ("fine-tune, 5M tokens overnight", "training.deadline_days", 0.5),
    ("fine-tune, 5M tokens in 36 hours", "training.deadline_days", 1.5),
    ("fine-tune, 5M tokens within two weeks", "training.deadline_days", 14),
    ("fine-tune, 5M tokens by tomorrow", "training.deadline_days", 1),
    ("pretraining on 1T tokens in 30 days", "training.tokens", 1e12),
    ("pretrain, 2 trillion tokens", "training.tokens", 2e12),
    ("train from scratch on a 300B token dataset", "training.tokens", 3e11),
    ("train on 15T tokens, sequence length 8192", "training.sequence_tokens", 8192),
    ("pretrain, 1T tokens, MFU 40%", "training.mfu_frac", 0.4),
    ("pretrain, 1T tokens, global batch 4M tokens", "training.global_batch_tokens", 4e6),
]

# Whole sentences: every key given must be there.
SENTENCES = [
    (
        "three services: Llama-3.3-70B chat at 5 req/s, bge-m3 embeddings at 200 req/s, whisper "
        "large-v3 1000 hours/day, on L40S",
        {
            "workloads.0.demand.requests_per_s": 5,
            "workloads.1.model": "BAAI/bge-m3",
            "workloads.1.demand.requests_per_s": 200,
            "workloads.2.batch.docs_per_day": 120_000,
            "policy.accelerators.allowed": ["L40S"],
        },
    ),
    (
        "Qwen3-32B at 3 req/s with 4k in 300 out and Llama-3.1-8B at 50 req/s with 500 in 100 out",
        {
            "workloads.0.request.input_tokens": 4000,
            "workloads.1.name": "chat 2",
            "workloads.1.request.output_tokens": 100,
        },
    ),
    (
        "50 autonomous agents on Qwen3-32B, 60k context, tool calls take 10 seconds",
        {W + "request.think_time_s": 10, W + "demand.concurrent_requests": 50},
    ),
    (
        "nightly batch: summarize 200k call transcripts of 6k tokens by 6am with Qwen2.5-32B",
        {W + "batch.docs": 200_000, W + "batch.deadline_h": 10, W + "schedule": "daily"},
    ),
    (
        "generate 5 billion synthetic tokens with Llama-3.1-70B within 2 weeks",
        {W + "batch.docs": 16_666_667, W + "batch.deadline_h": 336},
    ),
    (
        "speech recognition for 300 live streams with whisper large-v3-turbo",
        {W + "demand.requests_per_s": 10},
    ),
    ("CLIP ViT-L/14 image embeddings, 100M images in 3 days", {W + "batch.docs": 100_000_000}),
    (
        "GRPO training of Qwen2.5-7B, 10k prompts with 16 rollouts of 2k tokens",
        {
            W + "kind": "reinforcement_learning",
            W + "rollout.samples_per_prompt": 16,
            W + "training.tokens": 10_000 * 16 * 2500,
        },
    ),
    ("Llama-3.1-8B on CPU only, 1 request/s", {W + "slo.tpot_p95_ms": 150}),
    ("TinyLlama 1.1B autocomplete 200 requests/s", {W + "request.input_tokens": 2048 - 50}),
    ("Whisper large-v3, 2000 call-center hours per day", {W + "batch.docs_per_day": 240_000}),
    (
        "text to speech for 100 concurrent calls",
        {W + "kind": "text_to_speech", W + "demand.requests_per_s": 10},
    ),
    ("LLaVA-1.5-13B image captioning, 30 images/s", {W + "request.output_tokens": 100}),
    ("OCR 3 million pages with Qwen2.5-VL-7B this weekend", {W + "request.output_tokens": 800}),
    ("QLoRA Llama-3.3-70B on a single GPU, 10M tokens", {"policy.max_accelerators": 1}),
    ("we own two DGX H100; chat with Llama-3.1-70B at 5 requests/s", {"owned.0.nodes": 2}),
    (
        "we own 2 H100 nodes; chat with Qwen3-8B at 5 requests/s",
        {"owned.0.nodes": 2, "owned.0.accelerators_per_node": 8},
    ),
    (
        "chat with Qwen3-8B at 5 requests/s on 3 existing A100 servers",
        {"owned.0.nodes": 3, "owned.0.accelerators_per_node": 8},
    ),
    (
        "Llama-3.3-70B, 128k context, 1 request every 10 seconds",
        {W + "slo.tpot_p95_ms": 111.7, W + "slo.ttft_p95_ms": 33_500},
    ),
    (
        "Qwen3-32B chat for 400 users and summarise 2M documents in 3 days",
        {
            W + "name": "chat",
            W + "demand.users": 400,
            "workloads.1.kind": "batch_inference",
            "workloads.1.model": "Qwen/Qwen3-32B",
            "workloads.1.batch.docs": 2_000_000,
            "workloads.1.batch.deadline_h": 72,
            "workloads.1.request.input_tokens": 6000,
        },
    ),
    (
        "summarize 1M articles of 3000 tokens to 200 tokens in 2 days on L40S",
        {W + "request.input_tokens": 3000, W + "request.output_tokens": 200},
    ),
    ("ViT-B/16, 5000 images per second", {W + "model": "google/vit-base-patch16-224"}),
    (
        "serve Qwen3-235B for 2000 concurrent coding agents with 30k context",
        {
            W + "kind": "online_inference",
            W + "model": "Qwen/Qwen3-235B-A22B",
            W + "demand.concurrent_requests": 2000,
            W + "request.input_tokens": 30_000,
            W + "request.prefix_hit_frac": 0.9,
        },
    ),
    (
        "fine-tune Llama-3.1-70B with LoRA on 50M tokens this weekend under $500",
        {
            W + "kind": "finetuning",
            W + "model": "meta-llama/Llama-3.1-70B-Instruct",
            W + "training.method": "lora",
            W + "training.tokens": 5e7,
            W + "training.deadline_days": 2,
            "budget.total_usd": 500,
        },
    ),
    (
        "5M docs/day embeddings",
        {
            W + "kind": "batch_inference",
            W + "model": "BAAI/bge-m3",
            W + "batch.docs_per_day": 5_000_000,
            W + "batch.deadline_h": 24,
            W + "request.output_tokens": 0,
        },
    ),
    (
        "whisper large-v3, 10k hours/day",
        {
            W + "model": "openai/whisper-large-v3",
            W + "batch.docs_per_day": 1_200_000,
            W + "request.audio_s": 30,
        },
    ),
    (
        "we own 64 A100, load doubles in a year",
        {
            W + "kind": "generic",
            W + "work.accelerators": 44.8,
            "owned.0.accelerator": "A100",
            "owned.0.nodes": 8,
            "owned.0.accelerators_per_node": 8,
            "growth.per_month_frac": 0.059463,
        },
    ),
    (
        "RAG: bge-m3 + bge-reranker-v2-m3 + 70B",
        {
            W + "model": "meta-llama/Llama-3.3-70B-Instruct",
            W + "name": "rag",
            "workloads.1.model": "BAAI/bge-m3",
            "workloads.1.demand.requests_per_s": 1,
            "workloads.2.model": "BAAI/bge-reranker-v2-m3",
            "workloads.2.demand.requests_per_s": 1,
            "workloads.2.request.texts": 50,
        },
    ),
    (
        "rerank 200 queries/s with 50 passages each of 256 tokens",
        {
            W + "demand.requests_per_s": 200,
            W + "request.texts": 50,
            W + "request.input_tokens": 256,
        },
    ),
    (
        "classify 1 billion tweets with Llama-3.2-1B over the weekend on GCP",
        {W + "model": "meta-llama/Llama-3.2-1B", W + "batch.docs": 1e9, W + "batch.deadline_h": 48},
    ),
    (
        "translate 2B tokens nightly with Gemma-2-9B within 6 hours",
        {W + "batch.docs": 2_500_000, W + "batch.deadline_h": 6, W + "schedule": "daily"},
    ),
    (
        "bge-m3 embeddings for 20M documents per day of 512 tokens",
        {W + "batch.docs_per_day": 20_000_000, W + "request.input_tokens": 512},
    ),
    (
        "continue pretraining Qwen2.5-32B on 20B tokens in a week under $60k",
        {W + "kind": "pretraining", W + "training.tokens": 20e9},
    ),
    (
        "8x RTX 4090 in the office, Qwen2.5-14B for 200 users",
        {"owned.0.accelerator": "RTX 4090", "owned.0.accelerators_per_node": 8},
    ),
    (
        "our 4 servers with 8 L40S each, Llama-3.1-8B chat 60 req/s, doubling every year",
        {"owned.0.accelerator": "L40S", "owned.0.nodes": 4, "owned.0.accelerators_per_node": 8},
    ),
    (
        "Llama-3.1-8B chat 20 req/s by day and fine-tune Llama-3.1-8B on 100M tokens each night",
        {
            W + "demand.requests_per_s": 20,
            W + "demand.hourly_profile.3": 0.1,
            "workloads.1.kind": "finetuning",
            "workloads.1.training.tokens": 100_000_000,
        },
    ),
    (
        "chat on Qwen2.5-72B 5 req/s plus a batch of 50M docs of 1k tokens in 10 days"
        " with Qwen2.5-7B",
        {
            W + "model": "Qwen/Qwen2.5-72B",
            W + "demand.requests_per_s": 5,
            W + "request.input_tokens": 2000,
            "workloads.1.model": "Qwen/Qwen2.5-7B",
            "workloads.1.batch.docs": 50_000_000,
            "workloads.1.batch.deadline_h": 240,
            "workloads.1.request.input_tokens": 1000,
        },
    ),
    (
        "summarise 100M documents in a week on AWS",
        {
            W + "kind": "batch_inference",
            W + "batch.docs": 100_000_000,
            W + "batch.deadline_h": 168,
            "policy.clouds.allowed": ["aws"],
        },
    ),
    (
        "Llama-2-7B, pretrain, 1T tokens, in 30 days",
        {W + "kind": "pretraining", W + "training.deadline_days": 30},
    ),
    (
        "SDXL 2 images/s",
        {
            W + "model": "stabilityai/stable-diffusion-xl-base-1.0",
            W + "demand.requests_per_s": 2,
            W + "request.image_width_px": 1024,
        },
    ),
    (
        "FLUX.1-dev 1024x768 28 steps 10 images/min",
        {
            W + "request.image_width_px": 1024,
            W + "request.image_height_px": 768,
            W + "request.steps": 28,
            W + "demand.requests_per_s": 0.166666667,
        },
    ),
    (
        "DeepSeek-R1 at 100 requests/s with 4k in 1k out on 8xH200",
        {
            W + "model": "deepseek-ai/DeepSeek-R1",
            "policy.accelerators.allowed": ["H200"],
            "policy.max_accelerators": 8,
        },
    ),
    (
        "embed 100M documents of 512 tokens each with bge-m3 in 3 days",
        {
            W + "batch.docs": 1e8,
            W + "request.input_tokens": 512,
            W + "batch.deadline_h": 72,
        },
    ),
    (
        "transcribe 5000 hours of audio per day with whisper",
        {W + "batch.docs_per_day": 600_000, W + "model": "openai/whisper-large-v3"},
    ),
    (
        "transcribe 2,000 hours of audio in 2 days",
        {W + "batch.docs": 240_000, W + "batch.deadline_h": 48},
    ),
    (
        "whisper real-time transcription, 200 concurrent streams",
        {W + "kind": "online_inference", W + "demand.requests_per_s": 200 / 30},
    ),
    (
        "generate 1M images with SDXL at 512x512 30 steps in a week",
        {W + "batch.docs": 1e6, W + "request.image_height_px": 512, W + "request.steps": 30},
    ),
    (
        "translate 2M documents by tomorrow using gemma 27b",
        {W + "model": "google/gemma-3-27b-it", W + "batch.deadline_h": 24},
    ),
    (
        "process 10B tokens with llama 8b in 2 days under $2000",
        {W + "batch.docs": 5_000_000, "budget.total_usd": 2000},
    ),
    (
        "RAG chatbot over 1M documents for 800 employees with llama 70b in Germany",
        {W + "name": "rag", W + "demand.users": 800, "policy.regions.allowed": ["DEU"]},
    ),
    (
        "RAG with bge-large, bge-reranker and Qwen3-32B at 20 queries/s, top 20",
        {
            W + "demand.requests_per_s": 20,
            "workloads.1.demand.requests_per_s": 20,
            "workloads.2.demand.requests_per_s": 20,
            "workloads.2.request.texts": 20,
        },
    ),
    (
        "RAG with bge-m3 and 70B for 1800 users",
        {W + "demand.users": 1800, "workloads.1.demand.requests_per_s": 1},
    ),
    (
        "Our 4 servers with 8 A100 each: serve llama 70b to 2000 users",
        {"owned.0.nodes": 4, "owned.0.accelerators_per_node": 8, W + "demand.users": 2000},
    ),
    (
        "we have 8 H100 and 16 A100, serve llama 70b, 4000 users",
        {"owned.0.accelerator": "H100", "owned.1.accelerator": "A100", "owned.1.nodes": 2},
    ),
    (
        "How many H100s do I need to serve Llama-3.1-405B at 10 requests per second?",
        {W + "demand.requests_per_s": 10, "policy.accelerators.allowed": ["H100"]},
    ),
    (
        "all-MiniLM-L6-v2, 200k docs/day, 256 tokens each, p95 200 ms, peak 10x",
        {
            W + "kind": "online_inference",
            W + "demand.requests_per_day": 200_000,
            W + "slo.e2e_p95_s": 0.2,
        },
    ),
    (
        "pretrain a 100B model on 2T tokens in 45 days",
        {W + "model.params_b": 100, W + "training.tokens": 2e12},
    ),
    (
        "pretraining a 30B model on 600B tokens in two weeks",
        {W + "model.params_b": 30, W + "training.deadline_days": 14},
    ),
    (
        "Llama 3.1 8B for 50k daily users, each sending 5 requests per hour",
        {W + "demand.users": 50_000, W + "demand.requests_per_user_per_h": 5},
    ),
    (
        "our load will triple within 18 months; we have 32 H100 at 60% utilization",
        {W + "work.accelerators": 19.2, "owned.0.nodes": 4, "growth.per_month_frac": 0.062935},
    ),
    ("chat for 6000 users", {W + "model": "meta-llama/Llama-3.3-70B-Instruct"}),
    (
        "summarize 50k pages daily with llama 8b on L4 or L40S",
        {W + "batch.docs_per_day": 50_000, "policy.accelerators.allowed": ["L4", "L40S"]},
    ),
    ("classification of 10M emails per day", {W + "batch.docs_per_day": 1e7}),
    ("Wan 2.1, 100 clips/day, 832x480, 81 frames", {W + "request.frames": 81}),
    ("500 video clips per day with Wan2.1 14B", {W + "batch.docs_per_day": 500}),
    ("bert base, 1000 texts/s, 128 tokens each", {W + "demand.requests_per_s": 1000}),
]

SENTENCES += [
    ("fine-tune Qwen3-8B full, 2B tokens, in 3 days", {W + "training.method": "full"}),
    ("full parameter fine tuning of Qwen3-8B, 1B tokens", {W + "training.method": "full"}),
    ("supervised finetuning of Qwen3-8B, 1B tokens", {W + "kind": "finetuning"}),
    ("continual pretraining of Qwen3-14B, 20B tokens", {W + "kind": "pretraining"}),
    (
        "SFT Llama-3.3-70B on 50k examples of 2k tokens, 3 epochs",
        {W + "training.samples": 50_000, W + "training.sequence_tokens": 2000},
    ),
    ("DPO on Qwen3-32B with 60k preference pairs", {W + "training.samples": 120_000}),
    (
        "train resnet50 on imagenet in 2 hours",
        {W + "training.samples": 1_281_167, W + "training.epochs": 90},
    ),
    (
        "embed 100M documents of 500 tokens in 2 days with bge-m3",
        {W + "batch.docs": 1e8, W + "request.input_tokens": 500},
    ),
    (
        "embed 100M documents, 40B tokens in total, in 2 days with bge-m3",
        {W + "batch.docs": 1e8, W + "request.input_tokens": 400},
    ),
    ("fine-tune Qwen3-8B on 500M tokens on 4x RTX 4090, 2 days", {W + "training.deadline_days": 2}),
    (
        "fine-tune whisper large-v3 on 1000 hours of audio",
        {W + "training.samples": 120_000, W + "training.sequence_tokens": 1500},
    ),
    (
        "generate 10 million synthetic conversations with Llama-3.3-70B in 5 days",
        {W + "batch.docs": 10_000_000, W + "batch.deadline_h": 120},
    ),
    ("finetune Qwen3-8B on 10M tokens within a fortnight", {W + "training.deadline_days": 14}),
    (
        "serve Llama-3.3-70B for 2000 users and fine-tune Qwen3-8B on 20M tokens every night",
        {
            W + "model": "meta-llama/Llama-3.3-70B-Instruct",
            W + "demand.users": 2000,
            "workloads.1.kind": "finetuning",
            "workloads.1.model": "Qwen/Qwen3-8B",
            "workloads.1.training.tokens": 2e7,
            "workloads.1.training.deadline_days": 0.5,
            "workloads.1.schedule": "daily",
        },
    ),
    (
        "chat for 3000 users by day plus nightly fine-tuning of Llama-3.1-8B on 100M tokens",
        {
            W + "demand.hourly_profile.3": 0.1,
            "workloads.1.training.deadline_days": 0.5,
            "workloads.1.model": "meta-llama/Llama-3.1-8B-Instruct",
        },
    ),
]

REFUSED = [
    ("embeddings with zork-embed-text, 50 requests/s", "zork-"),
    ("spot", "neither a model nor a task"),
    ("", "neither a model nor a task"),
    ("hello world", "'hello world' at character 1"),
    ("Llma-3.3-70B, 100 users", "nearest: meta-llama/Llama-3.3-70B-Instruct"),
    ("serve GPT-5 for 100 users", "'GPT-5' at character 7"),
    ("Qwen3-32B, 100 users, 24 frobs", "'24 frobs' at character 23"),
    ("Qwen3-32B, 100 users, without fabric", "'without fabric' at character 23"),
    ("Qwen3-32B, 100 users, 200 users", "contradicts '100 users'"),
    ("Llama-3.3-70B or Qwen3-32B, 100 users", "choice between models"),
    ("Qwen3-32B, 100 users, rank 64", "has no place"),
    ("Qwen3-32B, chat, 10 users, in 3 days", "has no place"),
]

SENTENCES += [
    (
        "transcribe 50k hours of call recordings per month with whisper large-v3-turbo, results "
        "within 24 hours, budget 2000 dollars per month",
        {W + "batch.docs_per_day": 50e3 * 120 / 30.41666667, "budget.usd_per_month": 2000},
    ),
    (
        "pretrain a 3B model on 300B tokens, we have 3 weeks and 64 H100s",
        {
            W + "training.deadline_days": 21,
            "owned.0": {"accelerator": "H100", "nodes": 8, "accelerators_per_node": 8},
        },
    ),
    (
        "video generation using Wan 2.2, 500 5-second clips per day 720p",
        {
            W + "request.frames": 80,
            W + "request.image_width_px": 1280,
            W + "batch.docs_per_day": 500,
        },
    ),
    (
        "voice assistant: whisper + llama 8b + tts, 100 concurrent calls",
        {
            W + "demand.concurrent_requests": 100,
            "workloads.1.model": "openai/whisper-large-v3",
            "workloads.2.kind": "text_to_speech",
        },
    ),
    (
        "DeepSeek-R1 for 300 researchers, 2k prompts and 6k reasoning outputs",
        {W + "request.input_tokens": 2000, W + "request.output_tokens": 6000},
    ),
    ("process 10TB of text with Qwen3-8B", {W + "batch.docs": 10e12 / 4 / 2000}),
    (
        "translate 6 million words per day with Qwen3-8B",
        {W + "batch.docs_per_day": 6e6 * 4 / 3 / 800},
    ),
    (
        "analyse 3000 hours of video per day with Qwen2.5-VL-72B",
        {W + "batch.docs_per_day": 3000 * 3600},
    ),
    (
        "GRPO on Qwen2.5-7B, 1000 steps, 16 rollouts of 4k tokens, batch of 128 prompts",
        {W + "training.tokens": 1000 * 128 * 16 * 4500},
    ),
    (
        "distill Llama-3.1-405B into Llama-3.1-8B with 3B tokens in 10 days",
        {
            W + "batch.docs": 3e9 / 300,
            W + "batch.deadline_h": 120,
            "workloads.1.training.tokens": 3e9,
            "workloads.1.training.deadline_days": 5,
        },
    ),
    (
        "budget $800k to buy servers for serving Llama-3.3-70B to 3000 users",
        {"budget.capex_usd": 800_000},
    ),
    (
        "30k requests per minute peak, 8k average, with Llama-3.1-8B",
        {W + "demand.requests_per_s": 500, W + "demand.peak_to_mean": 3.75},
    ),
    (
        "Llama-3.1-8B for a game with 100k players, 2 prompts per player per hour",
        {W + "demand.users": 100_000, W + "demand.requests_per_user_per_h": 2},
    ),
    (
        "900 advisors ask Qwen3-32B about 20 questions a day each",
        {W + "demand.requests_per_day": 18_000},
    ),
    (
        "Qwen2.5-72B, 16 users at once, first token in less than 3 seconds",
        {W + "demand.concurrent_requests": 16, W + "slo.ttft_p95_ms": 3000},
    ),
    (
        "summarize 100 page PDFs, 2000 a day, using Llama-3.1-70B",
        {W + "request.input_tokens": 66_000, W + "batch.docs_per_day": 2000},
    ),
    (
        "BERT-large for 1000 qps with 50ms latency at p99 on T4 or L4",
        {W + "slo.e2e_p99_s": 0.05, "policy.accelerators.allowed": ["T4", "L4"]},
    ),
    (
        "we run 12 A100-80GB and 4 L40S today; Qwen3-32B for 500 users",
        {"owned.1.accelerator": "L40S", W + "demand.users": 500},
    ),
    (
        "whisper-large-v3 live captions for 300 streams with < 2 s delay",
        {W + "demand.requests_per_s": 10, W + "slo.e2e_p95_s": 2},
    ),
    (
        "ResNet-50 on 200 camera streams at 15 fps",
        {W + "demand.requests_per_s": 3000},
    ),
    (
        "semantic search over 100M documents, 500 qps",
        {W + "model": "BAAI/bge-m3", W + "demand.requests_per_s": 500},
    ),
]
SERVICE += [
    ("300 ms TTFT", "slo.ttft_p95_ms", 300),
    ("99th percentile TTFT 2 s", "slo.ttft_p99_ms", 2000),
]
TERMS += [("4 month project", "budget.horizon_months", 4)]
REFUSED += [
    ("train a Frobnet on 14M images for 30 epochs", "'Frobnet' at character 9"),
    ("how many users of Llama-3.3-70B chat can H100s carry?", "nothing limits it"),
]

SENTENCES += [
    ("I have a 10 kW server room, Qwen3-32B for 60 programmers", {"site.power_kw": 10}),
    ("retrain our 7B model on 20B tokens", {W + "kind": "pretraining"}),
    (
        "classify 1 billion web pages with a fine-tuned Llama-3.2-1B within 5 days",
        {W + "kind": "batch_inference", W + "batch.docs": 1e9},
    ),
    (
        "create embeddings for 30M PDF pages, then serve 50 queries per second",
        {W + "demand.requests_per_s": 50, "workloads.1.request.output_tokens": 0},
    ),
    ("Llama-3.2-11B-Vision for 20 images per second", {W + "name": "captioning"}),
    (
        "chat app: 50k DAU, 8 messages per day, Qwen3-8B",
        {W + "demand.requests_per_day": 400_000},
    ),
    (
        "Qwen3-32B, 100 requests per minute, power price 0.30 EUR/kWh",
        {"site.electricity_usd_per_kwh": 0.30 * 1.1684},
    ),
    (
        "search engine reranker, 1000 queries per second, 20 docs each, 256 tokens per doc",
        {W + "request.texts": 20, W + "model": "BAAI/bge-reranker-v2-m3"},
    ),
    (
        "fine-tune Llama-3.3-70B on 1.2B tokens, 8 nodes of 8 H100",
        {"policy.max_accelerators": 64},
    ),
    (
        "Qwen3-32B for 45 users with 10k token thinking outputs",
        {W + "request.output_tokens": 10_000},
    ),
    ("process 50 GB of logs per day with Llama-3.1-8B", {W + "batch.docs_per_day": 6.25e6}),
]
REFUSED += [("Qwen3-32B, 10 users in Atlantis", "'Atlantis' at character 24")]
SERVICE += [
    ("60 ms per token", "slo.tpot_p95_ms", 60),
    ("40 ms/token", "slo.tpot_p95_ms", 40),
    ("500 LoRA adapters", "request.lora_adapters", 500),
    ("20 customer adapters", "request.lora_adapters", 20),
]
SENTENCES += [
    (
        "generate 200 videos a day with Wan2.1-14B",
        {W + "model": "Wan-AI/Wan2.1-T2V-14B", W + "batch.docs_per_day": 200},
    ),
    (
        "Qwen3-32B, 2 req/s for 6 months, is it cheaper to buy or rent",
        {W + "demand.requests_per_s": 2, "budget.horizon_months": 6},
    ),
]
SERVICE += [("1k output", "request.output_tokens", 1000)]
SENTENCES += [
    (
        "Qwen2.5-VL-7B captions at 12 requests per second of 1024x1024 images",
        {W + "request.input_tokens": 37 * 37 + 100},
    ),
    ("serve a 7B model to 1M users", {W + "model": "Qwen/Qwen2.5-7B-Instruct"}),
    (
        "generate 10,000 videos of 10 seconds per month with HunyuanVideo",
        {W + "request.frames": 160, W + "batch.docs_per_day": 10_000 * 12 / 365},
    ),
]
SENTENCES += [
    (
        "chat with Llama-3.1-8B for 500 users and nightly embedding of 2M docs with bge-m3",
        {
            W + "name": "chat",
            W + "request.output_tokens": 300,
            "workloads.1.model": "BAAI/bge-m3",
            "workloads.1.batch.docs": 2e6,
            "workloads.1.batch.deadline_h": 12,
            "workloads.1.schedule": "daily",
        },
    ),
    (
        "fine-tune Qwen3-8B on 50M tokens each weekend",
        {W + "schedule": "weekly", W + "training.deadline_days": 2},
    ),
    (
        "fine-tune Qwen3-8B on 50M tokens twice a week",
        {W + "schedule": "2/week", W + "training.deadline_days": 3.5},
    ),
    (
        "weekly LoRA fine-tune of Llama-3.1-8B on 10M tokens",
        {W + "schedule": "weekly", W + "training.deadline_days": 7},
    ),
    (
        "embed 2M docs with bge-m3 every 2 days within 5 hours",
        {W + "schedule": "15.2083/month", W + "batch.docs": 2e6, W + "batch.deadline_h": 5},
    ),
    (
        "Qwen3-32B chatbot with 20k users, growing to 200k within a year",
        {"growth.per_month_frac": round(10 ** (1 / 12) - 1, 6)},
    ),
    (
        "Qwen3-32B in us-west-2 and eu-central-1 with 5 req/s each",
        {W + "demand.requests_per_s": 10},
    ),
    (
        "day: 50 rps, night: 5 rps, Llama-3.1-8B, 800/150",
        {W + "demand.requests_per_s": 50, W + "demand.hourly_profile.0": 0.1},
    ),
    (
        "Llama-3.1-8B to 2000 req/min w/ avg. 900 prompt tokens & 150 completion tokens",
        {W + "request.input_tokens": 900, W + "request.output_tokens": 150},
    ),
    (
        "summarization of 30 million articles (1200 tokens avg) to 100 tokens, 5 days, Qwen3-8B",
        {W + "request.input_tokens": 1200, W + "request.output_tokens": 100},
    ),
    (
        "fine tune llama-3.1-8b on 40k conversations x 1500 tokens",
        {W + "training.samples": 40_000, W + "training.sequence_tokens": 1500},
    ),
    (
        "replace our 64 V100 with something newer for Llama-3.1-8B at 100 req/s",
        {"policy.accelerators.forbidden": ["V100"]},
    ),
]
TERMS += [
    ("reserved instances allowed", "policy.purchases", ["on_demand", "reserved"]),
    ("disaggregated prefill", "policy.disaggregation", "allowed"),
]
SERVICE += [("five nines availability", "slo.availability_frac", 0.99999)]

# What hardware carries: the search begins with one, and nothing but what there is may serve.
SENTENCES += [
    (
        "we own two DGX H100, how many users of Llama-3.3-70B chat can they carry?",
        {
            W + "demand.users": 1,
            "policy.purchases": ["owned"],
            "policy.max_accelerators": 16,
            "policy.accelerators.allowed": ["H100"],
        },
    ),
    (
        "how many concurrent users can 8 H100 serve with Qwen3-32B?",
        {W + "demand.concurrent_requests": 1, W + "request.think_time_s": 30},
    ),
    (
        "what is the max number of requests per second of Qwen3-8B on 2 L4?",
        {W + "demand.requests_per_s": 1, "policy.max_accelerators": 2},
    ),
    (
        "how many output tokens per second can Qwen3-8B give on 2 L4?",
        {W + "demand.output_tokens_per_s": 1},
    ),
    ("how many agents can gpt-oss-120b serve on one H200?", {W + "demand.concurrent_requests": 1}),
    ("Qwen3-8B chat, how many requests a day for $900/month?", {W + "demand.requests_per_day": 1}),
    (
        "how many GPUs for 400 users of Qwen3-32B, we own 8 A100, no new hardware",
        {W + "demand.users": 400, "policy.max_accelerators": 8, "policy.purchases": ["owned"]},
    ),
]
TERMS += [
    ("on 1 L40S", "policy.max_accelerators", 1),
    ("on 1 RTX 4090", "policy.max_accelerators", 1),
    ("on 4090", "policy.accelerators.allowed", ["4090"]),
    ("no cloud", "policy.purchases", ["owned"]),
    ("we don't want to rent", "policy.purchases", ["owned"]),
    ("without renting anything", "policy.purchases", ["owned"]),
    ("we own 4 H100, only what we have", "policy.max_accelerators", 4),
    ("on our 8 A100, nothing else", "policy.max_accelerators", 8),
]
# How often people ask follows from what they do.
SENTENCES += [
    (
        "coding agents for 300 engineers, Qwen3-32B",
        {W + "demand.active_frac": 0.4, W + "demand.requests_per_user_per_h": 720},
    ),
    (
        "code completion for 300 engineers, Qwen3-8B",
        {W + "demand.requests_per_user_per_h": 180},
    ),
    ("chat for 300 engineers, Qwen3-32B", {W + "demand.requests_per_user_per_h": 10}),
]
# Traffic as it stands on the bill of an API, and services as they are known.
SENTENCES += [
    (
        "replace the OpenAI API: we use 3 billion input tokens and 400M output tokens a month",
        {
            W + "kind": "online_inference",
            W + "model": "meta-llama/Llama-3.3-70B-Instruct",
            W + "request.input_tokens": 2250,
            W + "demand.requests_per_day": pytest.approx(400e6 / 300 / 30.4167, rel=1e-3),
        },
    ),
    (
        "Qwen3-32B, offline, 200M output tokens per day",
        {W + "kind": "batch_inference", W + "batch.docs_per_day": pytest.approx(200e6 / 300)},
    ),
    (
        "a private ChatGPT alternative for 150 lawyers, documents up to 100 pages",
        {W + "name": "chat", W + "demand.users": 150, W + "request.input_tokens": 66_000},
    ),
    ("github copilot alternative for 80 developers", {W + "name": "agents"}),
]
SENTENCES += [
    (
        "host codestral for autocompletion, 120 developers",
        {W + "model": "mistralai/Codestral-22B-v0.1"},
    ),
    ("run DeepSeek-R1 at home for my family of 4", {W + "demand.users": 4}),
    (
        "serve 3 models: Qwen3-8B 20 rps, Llama-3.3-70B 2 rps",
        {W + "demand.requests_per_s": 20, "workloads.1.demand.requests_per_s": 2},
    ),
    (
        "Mixtral 8x22B, 4 requests per second, azure west europe",
        {"policy.clouds.allowed": ["azure"], "policy.regions.allowed": ["azure:westeurope"]},
    ),
    ("translate 1 billion words in 3 days", {W + "batch.deadline_h": 72}),
    (
        "would 4xH200 or 8xH100 be cheaper for Llama 405B fp8 at 3 rps",
        {"policy.accelerators.allowed": ["H200", "H100"]},
    ),
    (
        "we expect 500 users now and 5000 in twelve months, Mistral Small 3.2",
        {W + "demand.users": 500, "growth.per_month_frac": 0.211528},
    ),
]
SENTENCES += [
    (
        "deploy Phi-4 on Azure in Sweden, 3 requests per second",
        {"policy.clouds.allowed": ["azure"], "policy.regions.allowed": ["SWE"]},
    ),
    (
        "Qwen3-30B-A3B for 10k students, peak 50 requests per second",
        {W + "demand": {"requests_per_s": 50}},
    ),
    (
        "Gemma-3-4b on L4 with 95% of requests under 3 seconds, 20 rps",
        {W + "slo": {"e2e_p95_s": 3.0}},
    ),
    ("500k images classified per hour with ViT-L/16", {W + "model": "vit_large_patch16_224"}),
]

# What hardware is asked about, windows of the day, terms and limits as strangers typed them.
SENTENCES += [
    (
        "summarize 2M tickets every night between 22:00 and 06:00 using gpt-oss-20b",
        {W + "batch.docs": 2_000_000, W + "batch.deadline_h": 8},
    ),
    (
        "GRPO on Qwen2.5-7B, 10k prompts, 16 samples each, 1k tokens answers, on 16 A100s",
        {W + "rollout.samples_per_prompt": 16, W + "training.tokens": 10_000 * 16 * 1500},
    ),
    (
        "10M requests a month to Qwen3-32B on azure with 1 year reserved",
        {"policy.purchases": ["reserved"], "budget.horizon_months": 12.0},
    ),
    (
        "Qwen2.5-VL-7B, 3 images per second of 1920x1080, answer in 100 tokens",
        {W + "request.output_tokens": 100, W + "demand.requests_per_s": 3},
    ),
    ("we may not use more than 40 kW; serve mixtral 8x22b at 15 rps", {"site.power_kw": 40}),
    ("Wan2.1 14B text-to-video, 200 clips of 5 seconds a day", {W + "batch.docs_per_day": 200}),
    (
        "I have a single RTX 3090, can I run gemma3 27b?",
        {"owned.0.nodes": 1, "policy.purchases": ["owned"], W + "demand.concurrent_requests": 1},
    ),
    (
        "train a 70B from scratch on 2T tokens with 1024 H100: how long?",
        {"objective": "time", "policy.max_accelerators": 1024},
    ),
    (
        "SFT of Qwen3-14B on 200k examples averaging 1,200 tokens",
        {W + "training.samples": 200_000, W + "training.sequence_tokens": 1200},
    ),
    (
        "B200 versus H200 for DeepSeek R1, 100 concurrent users with 10k output tokens",
        {W + "request.output_tokens": 10_000},
    ),
    (
        "Llama 3.1 70B, 1M requests per day, prompts 3000 tokens of which 2500 is a shared system "
        "prompt, outputs 150",
        {W + "request.prefix_hit_frac": 0.8333, W + "request.input_tokens": 3000},
    ),
    (
        "An API with 250 req/min peak, mean 90 req/min, mixtral-8x7b",
        {W + "demand.requests_per_s": 250 / 60, W + "demand.peak_to_mean": 2.777778},
    ),
    (
        "document extraction w/ Qwen2.5-VL-72B, 1 million pages a month",
        {W + "model": "Qwen/Qwen2.5-VL-72B-Instruct", W + "request.output_tokens": 200},
    ),
    (
        "Transcribe 5000 one-hour podcasts per day w/ whisper large v3 turbo",
        {W + "batch.docs_per_day": 5000 * 120},
    ),
    ("resnet50 training on imagenet for 30 epochs with 8 V100", {W + "training.epochs": 30}),
    ("resnet50 training on imagenet with 8 V100", {W + "training.epochs": 90}),
]
SERVICE += [
    ("shared system prompt of 500 tokens, prompts of 1000 tokens", "request.prefix_hit_frac", 0.5),
    ("8-bit", "precision", "int8"),
    ("q4_k_m", "precision", "int4"),
]
TERMS += [
    ("less than 5 tonnes CO2 a year", "policy.max_co2_t_per_year", 5),
    ("at most 250 kg of CO2e per month", "policy.max_co2_t_per_year", 3),
    ("3-year life", "budget.horizon_months", 36),
    ("reserved 3yr vs on-demand", "policy.purchases", ["on_demand", "reserved"]),
    ("spot or on-demand", "policy.purchases", ["on_demand", "spot"]),
    ("we must not exceed $9000 a month", "budget.usd_per_month", 9000),
]
SENTENCES += [
    (
        CHAT + "600 users, office hours only (8am-6pm)",
        {W + "demand.hourly_profile.7": 0.1, W + "demand.hourly_profile.17": 1.0},
    ),
    (
        CHAT + "600 users between 10 pm and 5 am",
        {W + "demand.hourly_profile.2": 1.0, W + "demand.hourly_profile.12": 0.1},
    ),
]
LOADS += [("only one user", "demand.concurrent_requests", 1)]
REFUSED += [
    ("Jetson AGX Orin, llama 3.2 3b, one user", "is no accelerator of the catalog"),
    ("compare vllm and sglang for llama 3.3 70b at 5 rps", "--engines vllm,sglang"),
    ("llama 3.3 70b with a 1b draft, 5 users", "'1b' at character"),
]

SENTENCES += [
    ("Will a DGX Spark run gpt-oss-120b for two people?", {"policy.max_accelerators": 1}),
    (
        "we want to move 30M OpenAI calls/month (avg 900 in, 200 out) to llama-3.3-70b",
        {W + "demand.requests_per_day": 30e6 * 12 / 365, W + "request.input_tokens": 900},
    ),
    (
        "Is it cheaper to rent 8 H100 for two months or buy them, to train a 30B on 600B tokens?",
        {"policy.purchases": ["on_demand", "reserved", "owned"], "policy.max_accelerators": 8},
    ),
    (
        "img2img SDXL-Turbo 4 steps 512x512 for 100 users at 2 fps",
        {W + "demand.requests_per_s": 200, W + "request.steps": 4},
    ),
    (
        "llama 3.2 11b vision, 60k receipts/day, jpg ~1 megapixel",
        {W + "batch.docs_per_day": 60_000, W + "request.image_width_px": 1000},
    ),
    ("reward model training of Llama-3.1-8B on 300k comparisons", {W + "training.samples": 6e5}),
    (
        "pretraining: 400B MoE with 17B active, 15T tokens, 4096 GB200, how many days?",
        {W + "model.params_b": 400, W + "model.active_params_b": 17},
    ),
    (
        "BERT-large inference 2000 seq/s at 384 tokens",
        {W + "demand.requests_per_s": 2000, W + "request.input_tokens": 384},
    ),
    (
        "peak 50 rps, night 2 rps with gemma-3-12b-it",
        {W + "demand.requests_per_s": 50, W + "demand.hourly_profile.3": 0.04},
    ),
    (
        "start with 1k users and reach 50k users within 18 months on Llama 3.1 8B",
        {W + "demand.users": 1000, "growth.per_month_frac": 0.24276},
    ),
    (
        "budget 2 lakh rupees per month, llama 3.1 8b for 10 users",
        {"budget.usd_per_month": 2142.93},
    ),
]

SENTENCES += [
    (
        "100 parallel agents w/ Qwen3-32B, 20k tokens context, output 300, one step every 5 secs",
        {W + "request.think_time_s": 5, W + "demand.concurrent_requests": 100},
    ),
    (
        "batch inference: 1e9 tokens in, 1e8 tokens out per day on llama 3.1 70b",
        {W + "request.input_tokens": 3000, W + "batch.docs_per_day": 1e8 / 300},
    ),
    (
        "nightly fine-tune of Qwen3-8B with LoRA on the same four H100s",
        {"policy.max_accelerators": 4},
    ),
    (
        "train a 1T parameter MoE (32B active) on 20T tokens in 100 days",
        {W + "model.params_b": 1000, W + "model.active_params_b": 32},
    ),
    (
        CHAT + "200 clinicians, notes of 5 pages in and half a page out",
        {W + "request.input_tokens": 3300, W + "request.output_tokens": 330},
    ),
    (
        "voice agents: 150 calls at a time, qwen3-4b, response must start within 250ms",
        {W + "demand.concurrent_requests": 150, W + "request.input_tokens": 2000},
    ),
    (
        "400M tokens of synthetic data per day with mixtral-8x22b",
        {W + "batch.docs_per_day": 400e6 / 300},
    ),
    (
        "GH200, Llama 3.3 70B, 20 users, kv offload to cpu",
        {"policy.accelerators.allowed": ["GH200"]},
    ),
    (
        "30 rps burst 300 rps, llama 3.1 8b",
        {W + "demand.requests_per_s": 300, W + "demand.peak_to_mean": 10},
    ),
    ("5k msgs/s to Qwen3-4B", {W + "demand.requests_per_s": 5000}),
    ("12 q/s with 6 chunks of 500 tokens, llama 3.3 70b", {W + "request.input_tokens": 3000}),
    ("judge 600k pairs with Llama-3.1-70B, weekend", {W + "batch.deadline_h": 48}),
]
TERMS += [("at 95% confidence", "policy.min_probability_frac", 0.95)]

SENTENCES += [
    ("can I do full finetuning of llama 3.1 8b on one H100?", {W + "training.tokens": 1e7}),
]

SENTENCES += [
    (
        "a bot that gets 40,000 chats a day with 8 turns each; mistral small 24b",
        {W + "demand.requests_per_day": 320_000, W + "request.turns": 8},
    ),
    (
        "gemma 3 4b for an app with 200k daily users, 6 messages each per day",
        {W + "demand.requests_per_day": 1_200_000},
    ),
    (
        "TTFT below 500 ms for 8k prompts on Qwen2.5-14B at 6 rps",
        {W + "request.input_tokens": 8000, W + "demand.requests_per_s": 6},
    ),
    (
        "llama 3.1 8b, 1 user, first token in 100 ms, 125 tokens/s",
        {W + "slo.tpot_p95_ms": 8, W + "demand.users": 1},
    ),
    (
        "we own 8 L40S and can burst to spot for llama 3.1 8b, peak 60 rps, average 15",
        {"policy.spot_allowed": True, "owned.0.accelerators_per_node": 8},
    ),
    (
        "summarise 50k earnings calls transcripts of 10k tokens each within 2 days",
        {W + "batch.docs": 50_000, W + "request.input_tokens": 10_000},
    ),
]

REFUSED += [
    ("PaddleOCR-VL on 2M pages in 3 days", "is no model of the catalog"),
    ("hosting Foobar-X for 200 employees, chat", "is no model of the catalog"),
    ("Mistral-Nemo and Foobar-X for 300 users", "is no model of the catalog"),
    ("serve GPT-4o to 500 users", "is no model of the catalog"),
    ("32 GPUs shared by 12 research groups, is it enough?", "gpuplan plan cluster.yaml"),
    ("I have 6 A100 40GB, which model size can I serve to 100 users?", "asks which model"),
]
