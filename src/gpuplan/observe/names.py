"""Names that exporters and engines use, and what they mean in the common vocabulary.

A unit comes from the name or the schema, never from the size of a value. The one exception is told
in `generation.py`: old names that some collectors fill with ratios.
"""

from typing import Literal, NamedTuple

PERCENT = 0.01
MIB = 2.0**20
MEGA = 1e6
MILLI = 1e-3


class Word(NamedTuple):
    """One source name: the metric it becomes, its unit, and whether it only ever counts up."""

    metric: str
    scale: float = 1.0
    is_counter: bool = False


# NVIDIA's exporter: names up to DCGM 4.6, then those in base units of 4.7 [DCGM-fields].
DCGM: dict[str, Word] = {
    "DCGM_FI_DEV_GPU_UTIL": Word("gpu_util_frac", PERCENT),
    "DCGM_FI_DEV_GPU_UTIL_RATIO": Word("gpu_util_frac"),
    "DCGM_FI_DEV_MEM_COPY_UTIL": Word("memory_util_frac", PERCENT),
    "DCGM_FI_DEV_MEMORY_UTIL_RATIO": Word("memory_util_frac"),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": Word("engine_active_frac"),
    "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO": Word("engine_active_frac"),
    "DCGM_FI_PROF_SM_ACTIVE": Word("sm_active_frac"),
    "DCGM_FI_PROF_SM_UTIL_RATIO": Word("sm_active_frac"),
    "DCGM_FI_PROF_SM_OCCUPANCY": Word("sm_occupancy_frac"),
    "DCGM_FI_PROF_SM_OCCUPANCY_RATIO": Word("sm_occupancy_frac"),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": Word("tensor_active_frac"),
    "DCGM_FI_PROF_TENSOR_UTIL_RATIO": Word("tensor_active_frac"),
    "DCGM_FI_PROF_PIPE_FP16_ACTIVE": Word("fp16_active_frac"),
    "DCGM_FI_PROF_FP16_UTIL_RATIO": Word("fp16_active_frac"),
    "DCGM_FI_PROF_PIPE_FP32_ACTIVE": Word("fp32_active_frac"),
    "DCGM_FI_PROF_FP32_UTIL_RATIO": Word("fp32_active_frac"),
    "DCGM_FI_PROF_PIPE_FP64_ACTIVE": Word("fp64_active_frac"),
    "DCGM_FI_PROF_FP64_UTIL_RATIO": Word("fp64_active_frac"),
    "DCGM_FI_PROF_DRAM_ACTIVE": Word("dram_active_frac"),
    "DCGM_FI_PROF_DRAM_UTIL_RATIO": Word("dram_active_frac"),
    "DCGM_FI_DEV_POWER_USAGE": Word("power_w"),
    "DCGM_FI_DEV_BOARD_POWER_WATTS": Word("power_w"),
    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": Word("power_limit_w"),
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": Word("power_limit_w"),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": Word("energy_j_per_s", MILLI, is_counter=True),
    "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL": Word("energy_j_per_s", is_counter=True),
    "DCGM_FI_DEV_GPU_TEMP": Word("temperature_c"),
    "DCGM_FI_DEV_GPU_TEMP_CELSIUS": Word("temperature_c"),
    "DCGM_FI_DEV_MEMORY_TEMP": Word("memory_temperature_c"),
    "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS": Word("memory_temperature_c"),
    "DCGM_FI_DEV_SM_CLOCK": Word("sm_clock_hz", MEGA),
    "DCGM_FI_DEV_SM_CLOCK_HERTZ": Word("sm_clock_hz"),
    "DCGM_FI_DEV_MEM_CLOCK": Word("memory_clock_hz", MEGA),
    "DCGM_FI_DEV_MEMORY_CLOCK_HERTZ": Word("memory_clock_hz"),
    "DCGM_FI_DEV_FB_USED": Word("memory_used_bytes", MIB),
    "DCGM_FI_DEV_FB_USED_BYTES": Word("memory_used_bytes"),
    "DCGM_FI_DEV_FB_FREE": Word("memory_free_bytes", MIB),
    "DCGM_FI_DEV_FB_FREE_BYTES": Word("memory_free_bytes"),
    "DCGM_FI_DEV_FB_TOTAL": Word("memory_total_bytes", MIB),
    "DCGM_FI_DEV_FB_CAPACITY_BYTES": Word("memory_total_bytes"),
    # Rates, although their names sound like totals.
    "DCGM_FI_PROF_PCIE_TX_BYTES": Word("pcie_tx_bytes_per_s"),
    "DCGM_FI_PROF_PCIE_RX_BYTES": Word("pcie_rx_bytes_per_s"),
    "DCGM_FI_PROF_NVLINK_TX_BYTES": Word("link_tx_bytes_per_s"),
    "DCGM_FI_PROF_NVLINK_RX_BYTES": Word("link_rx_bytes_per_s"),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": Word("pcie_replays_per_s", is_counter=True),
    "DCGM_FI_DEV_PCIE_REPLAY_TOTAL": Word("pcie_replays_per_s", is_counter=True),
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": Word("throttle_bits"),
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": Word("throttle_bits"),
    "DCGM_FI_DEV_XID_ERRORS": Word("xid_code"),
    "DCGM_FI_DEV_XID_ERROR": Word("xid_code"),
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": Word("ecc_corrected_per_s", is_counter=True),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": Word("ecc_uncorrected_per_s", is_counter=True),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": Word("remapped_rows_count"),
    "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL": Word("remapped_rows_count"),
}

# Other vendors and the smaller exporters [AMD-exporter] [Intel-XPUM] [nvidia-gpu-exporter].
OTHER_DEVICES: dict[str, Word] = {
    "gpu_gfx_activity": Word("gpu_util_frac", PERCENT),
    "amd_gpu_gfx_activity": Word("gpu_util_frac", PERCENT),
    "gpu_umc_activity": Word("memory_util_frac", PERCENT),
    "gpu_package_power": Word("power_w"),
    "gpu_average_package_power": Word("power_w"),
    "amd_gpu_package_power": Word("power_w"),
    "gpu_junction_temperature": Word("temperature_c"),
    "gpu_memory_temperature": Word("memory_temperature_c"),
    "gpu_used_vram": Word("memory_used_bytes", MIB),
    "gpu_free_vram": Word("memory_free_bytes", MIB),
    "gpu_total_vram": Word("memory_total_bytes", MIB),
    "gpu_clock": Word("sm_clock_hz", MEGA),
    "gpu_ecc_uncorrect_total": Word("ecc_uncorrected_per_s", is_counter=True),
    "gpu_ecc_correct_total": Word("ecc_corrected_per_s", is_counter=True),
    "xpum_engine_ratio": Word("gpu_util_frac"),
    "xpum_power_watts": Word("power_w"),
    "xpum_memory_used_bytes": Word("memory_used_bytes"),
    "xpum_temperature_celsius": Word("temperature_c"),
    "nvidia_smi_utilization_gpu_ratio": Word("gpu_util_frac"),
    "nvidia_smi_utilization_memory_ratio": Word("memory_util_frac"),
    "nvidia_smi_power_draw_watts": Word("power_w"),
    "nvidia_smi_memory_used_bytes": Word("memory_used_bytes"),
    "nvidia_smi_memory_total_bytes": Word("memory_total_bytes"),
    "nvidia_smi_temperature_gpu": Word("temperature_c"),
    "nvidia_gpu_duty_cycle": Word("gpu_util_frac", PERCENT),
    "nvidia_gpu_power_usage_milliwatts": Word("power_w", MILLI),
    "nvidia_gpu_memory_used_bytes": Word("memory_used_bytes"),
    "nv_gpu_utilization": Word("gpu_util_frac"),  # Triton reports 0 to 1
    "nv_gpu_power_usage": Word("power_w"),
    "nv_gpu_power_limit": Word("power_limit_w"),
    "nv_gpu_memory_used_bytes": Word("memory_used_bytes"),
    "nv_gpu_memory_total_bytes": Word("memory_total_bytes"),
    "ray_node_gpus_utilization": Word("gpu_util_frac", PERCENT),
    "ray_node_gram_used": Word("memory_used_bytes", MIB),
    "GPUUtilization": Word("gpu_util_frac", PERCENT),
    "CPUUtilization": Word("cpu_util_frac", PERCENT),
}

ENGINES: dict[str, Word] = {
    "vllm:num_requests_running": Word("requests_running_count"),
    "vllm:num_requests_waiting": Word("requests_waiting_count"),
    "vllm:kv_cache_usage_perc": Word("kv_cache_frac"),  # 0 to 1 in spite of the name
    "vllm:gpu_cache_usage_perc": Word("kv_cache_frac"),
    "vllm:num_preemptions_total": Word("preemptions_per_s", is_counter=True),
    "vllm:prompt_tokens_total": Word("input_tokens_per_s", is_counter=True),
    "vllm:generation_tokens_total": Word("output_tokens_per_s", is_counter=True),
    "vllm:avg_prompt_throughput_toks_per_s": Word("input_tokens_per_s"),
    "vllm:avg_generation_throughput_toks_per_s": Word("output_tokens_per_s"),
    "vllm:request_success_total": Word("requests_per_s", is_counter=True),
    "sglang:num_running_reqs": Word("requests_running_count"),
    "sglang:num_queue_reqs": Word("requests_waiting_count"),
    "sglang:token_usage": Word("kv_cache_frac"),
    "sglang:cache_hit_rate": Word("prefix_hit_frac"),
    "sglang:gen_throughput": Word("output_tokens_per_s"),
    "sglang:prompt_tokens_total": Word("input_tokens_per_s", is_counter=True),
    "sglang:generation_tokens_total": Word("output_tokens_per_s", is_counter=True),
    "tgi_queue_size": Word("requests_waiting_count"),
    "tgi_batch_current_size": Word("requests_running_count"),
    "tgi_request_success": Word("requests_per_s", is_counter=True),
    "tgi_request_failure": Word("requests_failed_per_s", is_counter=True),
    "trtllm_request_success_total": Word("requests_per_s", is_counter=True),
    "trtllm_kv_cache_utilization": Word("kv_cache_frac"),
    "num_requests_running": Word("requests_running_count"),  # NIM drops the prefix
    "num_requests_waiting": Word("requests_waiting_count"),
    "gpu_cache_usage_perc": Word("kv_cache_frac"),
    "prompt_tokens_total": Word("input_tokens_per_s", is_counter=True),
    "generation_tokens_total": Word("output_tokens_per_s", is_counter=True),
    "num_preemptions_total": Word("preemptions_per_s", is_counter=True),
    "request_success_total": Word("requests_per_s", is_counter=True),
    "request_failure_total": Word("requests_failed_per_s", is_counter=True),
    "nv_inference_request_success": Word("requests_per_s", is_counter=True),
    "nv_inference_request_failure": Word("requests_failed_per_s", is_counter=True),
    "nv_inference_pending_request_count": Word("requests_waiting_count"),
    "ts_inference_requests_total": Word("requests_per_s", is_counter=True),
    "ray_serve_num_ongoing_requests_at_replicas": Word("requests_running_count"),
    "ray_serve_deployment_queued_queries": Word("requests_waiting_count"),
}

HOSTS: dict[str, Word] = {
    "kube_deployment_status_replicas_available": Word("replicas_count"),
    "kube_horizontalpodautoscaler_status_current_replicas": Word("replicas_count"),
    "node_disk_read_bytes_total": Word("disk_read_bytes_per_s", is_counter=True),
    "node_disk_written_bytes_total": Word("disk_write_bytes_per_s", is_counter=True),
    "node_disk_io_time_seconds_total": Word("disk_busy_frac", is_counter=True),
    "node_network_receive_bytes_total": Word("network_rx_bytes_per_s", is_counter=True),
    "node_network_transmit_bytes_total": Word("network_tx_bytes_per_s", is_counter=True),
    "node_network_speed_bytes": Word("network_line_bytes_per_s"),
    "node_netstat_Tcp_OutSegs": Word("tcp_sent_per_s", is_counter=True),
    "node_netstat_Tcp_RetransSegs": Word("tcp_retransmitted_per_s", is_counter=True),
    "node_infiniband_port_data_received_bytes_total": Word(
        "fabric_rx_bytes_per_s", is_counter=True
    ),
    "node_infiniband_port_data_transmitted_bytes_total": Word(
        "fabric_tx_bytes_per_s", is_counter=True
    ),
    "node_infiniband_rate_bytes_per_second": Word("fabric_line_bytes_per_s"),
}
PROMETHEUS = DCGM | OTHER_DEVICES | ENGINES | HOSTS

HISTOGRAMS: dict[str, str] = {
    "vllm:time_to_first_token_seconds": "ttft_s",
    "vllm:time_per_output_token_seconds": "tpot_s",
    "vllm:inter_token_latency_seconds": "tpot_s",
    "vllm:e2e_request_latency_seconds": "e2e_s",
    "vllm:request_queue_time_seconds": "wait_s",
    "vllm:request_prompt_tokens": "input_tokens",
    "vllm:request_generation_tokens": "output_tokens",
    "sglang:time_to_first_token_seconds": "ttft_s",
    "sglang:time_per_output_token_seconds": "tpot_s",
    "sglang:inter_token_latency_seconds": "tpot_s",
    "sglang:e2e_request_latency_seconds": "e2e_s",
    "tgi_request_queue_duration": "wait_s",
    "tgi_request_duration": "e2e_s",
    "tgi_request_mean_time_per_token_duration": "tpot_s",
    "tgi_request_input_length": "input_tokens",
    "tgi_request_generated_tokens": "output_tokens",
    "trtllm_time_to_first_token_seconds": "ttft_s",
    "trtllm_time_per_output_token_seconds": "tpot_s",
    "trtllm_e2e_request_latency_seconds": "e2e_s",
    "trtllm_request_queue_time_seconds": "wait_s",
    "time_to_first_token_seconds": "ttft_s",
    "time_per_output_token_seconds": "tpot_s",
    "e2e_request_latency_seconds": "e2e_s",
}
# Two counters whose quotient is a metric: hits over queries.
QUOTIENTS: dict[str, tuple[str, Literal["over", "under"]]] = {
    "vllm:prefix_cache_hits_total": ("prefix_hit_frac", "over"),
    "vllm:prefix_cache_queries_total": ("prefix_hit_frac", "under"),
}
# Labels that name what a series is about; the first one found counts.
LABELS: dict[str, tuple[str, ...]] = {
    "node": ("Hostname", "hostname", "exported_instance", "node", "nodename", "instance", "host"),
    "device": ("gpu", "gpu_id", "GpuId", "gpu_index", "index", "minor_number", "device_id"),
    "uuid": ("UUID", "uuid", "gpu_uuid"),
    "model": ("modelName", "model_name_gpu", "card_series", "GpuDeviceName"),
    "team": ("exported_namespace", "namespace", "team", "account"),
    "job": ("exported_pod", "pod", "container_ip", "job_id", "pod_name"),
    "service": ("model_name", "model", "deployment", "engine_type"),
}
MIG_LABELS = ("GPU_I_PROFILE", "GPU_I_ID")
