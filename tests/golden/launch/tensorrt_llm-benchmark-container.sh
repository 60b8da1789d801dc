#!/bin/sh
# TensorRT-LLM 1.2.1 with Qwen/Qwen3-30B-A3B-FP8, purpose benchmark.
# Written by Flipline from the sizing. Not tried on a GPU, in a container or on a cluster by Flipline.
# ! Shared memory of 8 GB: its docs use --ipc=host; a private 8 GB is ours and was not tried.
# ! Digest as pinned by invarlock/invarlock@1ac5dd28, not pulled here.
# ! /srv/models must belong to user 10001; the model has to be there or is downloaded to it.
# ! Put tensorrt_llm.yaml into /etc/llm first.
set -eu
rm -f tensorrt-llm.cid
exec docker run \
  --pull never \
  --cidfile tensorrt-llm.cid \
  --network host \
  --restart no \
  --gpus 1 \
  --ulimit memlock=-1 \
  --ipc private \
  --shm-size 8g \
  --user 10001:10001 \
  --read-only \
  --tmpfs /tmp:rw,exec,nosuid,nodev \
  --cap-drop ALL \
  --security-opt no-new-privileges \
  --volume /srv/models:/models \
  --volume /etc/llm/tensorrt_llm.yaml:/settings/tensorrt_llm.yaml:ro \
  --env HOME=/tmp \
  --env USER=llm \
  --env HF_HOME=/models \
  --env TRTLLM_NO_USAGE_STATS=1 \
  --env HF_HUB_DISABLE_TELEMETRY=1 \
  --entrypoint trtllm-serve nvcr.io/nvidia/tensorrt-llm/release:1.2.1@sha256:33cd085b772947bd22b7273886539331420404e5d2a4a039945241945ff927b9 Qwen/Qwen3-30B-A3B-FP8 \
  --host 127.0.0.1 \
  --port 8000 \
  --max_seq_len 4096 \
  --max_batch_size 32 \
  --max_num_tokens 2048 \
  --config /settings/tensorrt_llm.yaml
# Why each setting has its value:
#   TRTLLM_NO_USAGE_STATS 1: no usage reports leave the machine
#   HF_HUB_DISABLE_TELEMETRY 1: the hub library reports nothing either
#   --host 127.0.0.1: reachable from this machine only
#   --port 8000: where the client sends
#   --max_seq_len 4096: context of 4,096 tokens, input plus output (requirements)
#   --max_batch_size 32: largest number of requests in one step
#   --max_num_tokens 2048: tokens in one step, stated because every engine has a default of its own
#   kv_cache_config.free_gpu_memory_fraction 0.710: KV cache 60.0 GiB, weights 31.2, reserve 6.0 of 121.7 GiB (sizing). It means: fraction of what is free after weights and activations
#   kv_cache_config.dtype auto: precision of the KV cache in the sizing
#   kv_cache_config.enable_block_reuse true: stated, so that every candidate has the same
#   enable_chunked_prefill true: a long prompt is cut and must not take a whole step
#   return_perf_metrics true: the metrics page answers 404 without it
