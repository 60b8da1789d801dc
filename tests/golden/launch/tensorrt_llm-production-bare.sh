#!/bin/sh
# TensorRT-LLM 1.2.1 with Qwen/Qwen3-30B-A3B-FP8, purpose production.
# Written by Flipline from the sizing. Not tried on a GPU, in a container or on a cluster by Flipline.
# ! There is no API key. Open to whoever reaches the port: every route.
set -eu
cat > tensorrt_llm.yaml <<'SETTINGS'
kv_cache_config:
  free_gpu_memory_fraction: 0.71
  dtype: auto
  enable_block_reuse: true
enable_chunked_prefill: true
return_perf_metrics: true
SETTINGS
export TRTLLM_NO_USAGE_STATS=1
export HF_HUB_DISABLE_TELEMETRY=1
exec trtllm-serve Qwen/Qwen3-30B-A3B-FP8 \
  --host 127.0.0.1 \
  --port 8000 \
  --max_seq_len 4096 \
  --max_batch_size 12 \
  --max_num_tokens 2048 \
  --config tensorrt_llm.yaml
# Why each setting has its value:
#   TRTLLM_NO_USAGE_STATS 1: no usage reports leave the machine
#   HF_HUB_DISABLE_TELEMETRY 1: the hub library reports nothing either
#   --host 127.0.0.1: reachable from this machine only
#   --port 8000: where the client sends
#   --max_seq_len 4096: context of 4,096 tokens, input plus output (requirements)
#   --max_batch_size 12: largest number of requests in one step
#   --max_num_tokens 2048: tokens in one step, stated because every engine has a default of its own
#   kv_cache_config.free_gpu_memory_fraction 0.710: KV cache 60.0 GiB, weights 31.2, reserve 6.0 of 121.7 GiB (sizing). It means: fraction of what is free after weights and activations
#   kv_cache_config.dtype auto: precision of the KV cache in the sizing
#   kv_cache_config.enable_block_reuse true: a prompt that begins like an earlier one is not computed again
#   enable_chunked_prefill true: a long prompt is cut and must not take a whole step
#   return_perf_metrics true: the metrics page answers 404 without it
