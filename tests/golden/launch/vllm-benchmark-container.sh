#!/bin/sh
# vLLM 0.33.0 with Qwen/Qwen3-30B-A3B-FP8, purpose benchmark.
# Written by Flipline from the sizing. Not tried on a GPU, in a container or on a cluster by Flipline.
# ! Shared memory of 2 GB: vLLM docs deployment/k8s.
# ! Digest not known: pin it before use. After docker pull vllm/vllm-openai:v0.33.0, this prints it: docker image inspect --format '{{index .RepoDigests 0}}' vllm/vllm-openai:v0.33.0 (tag by the documented scheme, not pulled).
# ! /srv/models must belong to user 10001; the model has to be there or is downloaded to it.
set -eu
rm -f vllm.cid
exec docker run \
  --pull never \
  --cidfile vllm.cid \
  --network host \
  --restart no \
  --gpus 1 \
  --ulimit memlock=-1 \
  --ipc private \
  --shm-size 2g \
  --user 10001:10001 \
  --read-only \
  --tmpfs /tmp:rw,exec,nosuid,nodev \
  --cap-drop ALL \
  --security-opt no-new-privileges \
  --volume /srv/models:/models \
  --env HOME=/tmp \
  --env USER=llm \
  --env HF_HOME=/models \
  --env VLLM_SERVER_DEV_MODE=1 \
  --env VLLM_NO_USAGE_STATS=1 \
  --env HF_HUB_DISABLE_TELEMETRY=1 \
  --entrypoint vllm vllm/vllm-openai:v0.33.0 serve Qwen/Qwen3-30B-A3B-FP8 \
  --host 127.0.0.1 \
  --port 8000 \
  --served-model-name plan-b \
  --revision ad44e777 \
  --max-model-len 4096 \
  --max-num-seqs 32 \
  --max-num-batched-tokens 2048 \
  --gpu-memory-utilization 0.798 \
  --kv-cache-dtype auto \
  --enable-prefix-caching \
  --generation-config vllm \
  --seed 0 \
  --enable-prompt-tokens-details \
  --no-enable-log-requests \
  --disable-uvicorn-access-log
# Why each setting has its value:
#   VLLM_SERVER_DEV_MODE 1: the prefix cache can be reset between runs
#   VLLM_NO_USAGE_STATS 1: no usage statistics leave the machine
#   HF_HUB_DISABLE_TELEMETRY 1: the hub library reports nothing either
#   --host 127.0.0.1: reachable from this machine only
#   --port 8000: where the client sends
#   --served-model-name plan-b: the name that requests use, the same for every engine
#   --revision ad44e777: the weights that were chosen, whatever is uploaded later
#   --max-model-len 4096: context of 4,096 tokens, input plus output (requirements)
#   --max-num-seqs 32: largest number of requests in one step
#   --max-num-batched-tokens 2048: tokens in one step, stated because every engine has a default of its own
#   --gpu-memory-utilization 0.798: KV cache 60.0 GiB, weights 31.2, reserve 6.0 of 121.7 GiB (sizing). It means: fraction of the device's total; weights, KV cache, activations and graphs are inside
#   --kv-cache-dtype auto: precision of the KV cache in the sizing
#   --enable-prefix-caching: stated, so that every candidate has the same
#   --generation-config vllm: the model's file must not change the sampling
#   --seed 0: runs can be repeated
#   --enable-prompt-tokens-details: cached tokens are reported with each answer
#   --no-enable-log-requests: request parameters stay out of the log, stated so that no later default changes it
#   --disable-uvicorn-access-log: an access line per request costs time at high rates
