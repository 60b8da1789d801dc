#!/bin/sh
# SGLang 0.5.23 with Qwen/Qwen3-30B-A3B-FP8, purpose production.
# Written by Flipline from the sizing. Not tried on a GPU, in a container or on a cluster by Flipline.
# ! Shared memory of 32 GB: sglang docs get-started/install.mdx@2a0e55e6.
# ! Digest not known: pin it before use. After docker pull lmsysorg/sglang:v0.5.23, this prints it: docker image inspect --format '{{index .RepoDigests 0}}' lmsysorg/sglang:v0.5.23 (tag by the documented scheme, not pulled).
# ! SGLANG_API_KEY and SGLANG_ADMIN_API_KEY: lines NAME=key in /etc/llm/sglang.env, readable by root only. A key covers every path but health, readiness and metrics; management routes take the admin key once there is one; open without it: /health, /health_generate, /ready, /metrics. It is given by a flag, so the process list shows it.
# ! /srv/models must belong to user 10001; the model has to be there or is downloaded to it.
set -eu
exec docker run \
  --detach \
  --name sglang \
  --restart unless-stopped \
  --publish 127.0.0.1:30000:30000 \
  --log-opt max-size=50m \
  --log-opt max-file=5 \
  --gpus 1 \
  --ulimit memlock=-1 \
  --ipc private \
  --shm-size 32g \
  --user 10001:10001 \
  --read-only \
  --tmpfs /tmp:rw,exec,nosuid,nodev \
  --cap-drop ALL \
  --security-opt no-new-privileges \
  --volume /srv/models:/models \
  --env-file /etc/llm/sglang.env \
  --env HOME=/tmp \
  --env USER=llm \
  --env HF_HOME=/models \
  --env HF_HUB_DISABLE_TELEMETRY=1 \
  --env DISABLE_OPENAPI_DOC=1 \
  --entrypoint sh lmsysorg/sglang:v0.5.23 \
  -c 'exec "$0" "$@" --api-key "$SGLANG_API_KEY" --admin-api-key "$SGLANG_ADMIN_API_KEY"' sglang serve Qwen/Qwen3-30B-A3B-FP8 \
  --host 0.0.0.0 \
  --port 30000 \
  --served-model-name plan-b \
  --revision ad44e777 \
  --context-length 4096 \
  --max-running-requests 12 \
  --max-queued-requests 50 \
  --chunked-prefill-size 2048 \
  --enable-mixed-chunk \
  --mem-fraction-static 0.749 \
  --kv-cache-dtype auto \
  --enable-metrics \
  --enable-cache-report \
  --log-level-http warning
# Why each setting has its value:
#   HF_HUB_DISABLE_TELEMETRY 1: the hub library reports nothing
#   DISABLE_OPENAPI_DOC 1: the list of routes is not published
#   --host 0.0.0.0: inside the container; its port is published on 127.0.0.1 only
#   --port 30000: where the client sends
#   --served-model-name plan-b: the name that requests use, the same for every engine
#   --revision ad44e777: the weights that were chosen, whatever is uploaded later
#   --context-length 4096: context of 4,096 tokens, input plus output (requirements)
#   --max-running-requests 12: largest number of requests in one step
#   --max-queued-requests 50: requests that may wait; more are refused at once and do not time out
#   --chunked-prefill-size 2048: tokens in one step, stated because every engine has a default of its own
#   --enable-mixed-chunk: a long prompt must not pause running answers, as in the others
#   --mem-fraction-static 0.749: KV cache 60.0 GiB, weights 31.2 of 121.7 GiB (sizing). It means: fraction of the device's total for weights and KV pool; activations and graphs live in the rest
#   --kv-cache-dtype auto: precision of the KV cache in the sizing
#   --enable-metrics: the metrics page is off by default
#   --enable-cache-report: cached tokens are reported with each answer
#   --log-level-http warning: no access line per request
