#!/bin/sh
# vLLM 0.33.0 with Qwen/Qwen3-30B-A3B-FP8, purpose production.
# Written by Flipline from the sizing. Not tried on a GPU, in a container or on a cluster by Flipline.
# ! Shared memory of 2 GB: vLLM docs deployment/k8s.
# ! Digest not known: pin it before use. After docker pull vllm/vllm-openai:v0.33.0, this prints it: docker image inspect --format '{{index .RepoDigests 0}}' vllm/vllm-openai:v0.33.0 (tag by the documented scheme, not pulled).
# ! VLLM_API_KEY: lines NAME=key in /etc/llm/vllm.env, readable by root only. A key covers paths that begin with /v1, /v2, /inference or /cohere, and nothing else; open without it: /health, /metrics, /version, /load, /tokenize, /detokenize, /invocations, /scale_elastic_ep, /docs.
# ! /srv/models must belong to user 10001; the model has to be there or is downloaded to it.
set -eu
exec docker run \
  --detach \
  --name vllm \
  --restart unless-stopped \
  --publish 127.0.0.1:8000:8000 \
  --log-opt max-size=50m \
  --log-opt max-file=5 \
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
  --env-file /etc/llm/vllm.env \
  --env HOME=/tmp \
  --env USER=llm \
  --env HF_HOME=/models \
  --env VLLM_NO_USAGE_STATS=1 \
  --env HF_HUB_DISABLE_TELEMETRY=1 \
  --entrypoint vllm vllm/vllm-openai:v0.33.0 serve Qwen/Qwen3-30B-A3B-FP8 \
  --host 0.0.0.0 \
  --port 8000 \
  --served-model-name plan-b \
  --revision ad44e777 \
  --max-model-len 4096 \
  --max-num-seqs 12 \
  --max-num-queued-reqs 50 \
  --max-num-batched-tokens 2048 \
  --gpu-memory-utilization 0.798 \
  --kv-cache-dtype auto \
  --enable-prefix-caching \
  --enable-prompt-tokens-details \
  --no-enable-log-requests \
  --disable-access-log-for-endpoints /health,/metrics \
  --disable-fastapi-docs
# Why each setting has its value:
#   VLLM_NO_USAGE_STATS 1: no usage statistics leave the machine
#   HF_HUB_DISABLE_TELEMETRY 1: the hub library reports nothing either
#   --host 0.0.0.0: inside the container; its port is published on 127.0.0.1 only
#   --port 8000: where the client sends
#   --served-model-name plan-b: the name that requests use, the same for every engine
#   --revision ad44e777: the weights that were chosen, whatever is uploaded later
#   --max-model-len 4096: context of 4,096 tokens, input plus output (requirements)
#   --max-num-seqs 12: largest number of requests in one step
#   --max-num-queued-reqs 50: requests that may wait; more are refused at once and do not time out
#   --max-num-batched-tokens 2048: tokens in one step, stated because every engine has a default of its own
#   --gpu-memory-utilization 0.798: KV cache 60.0 GiB, weights 31.2, reserve 6.0 of 121.7 GiB (sizing). It means: fraction of the device's total; weights, KV cache, activations and graphs are inside
#   --kv-cache-dtype auto: precision of the KV cache in the sizing
#   --enable-prefix-caching: a prompt that begins like an earlier one is not computed again
#   --enable-prompt-tokens-details: cached tokens are reported with each answer
#   --no-enable-log-requests: request parameters stay out of the log, stated so that no later default changes it
#   --disable-access-log-for-endpoints /health,/metrics: probes and scrapes do not fill the log
#   --disable-fastapi-docs: the list of routes is not published
