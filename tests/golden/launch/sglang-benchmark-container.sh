#!/bin/sh
# SGLang 0.5.23 with Qwen/Qwen3-30B-A3B-FP8, purpose benchmark.
# Written by Flipline from the sizing. Not tried on a GPU, in a container or on a cluster by Flipline.
# ! Shared memory of 32 GB: sglang docs get-started/install.mdx@2a0e55e6.
# ! Digest not known: pin it before use. After docker pull lmsysorg/sglang:v0.5.23, this prints it: docker image inspect --format '{{index .RepoDigests 0}}' lmsysorg/sglang:v0.5.23 (tag by the documented scheme, not pulled).
# ! /srv/models must belong to user 10001; the model has to be there or is downloaded to it.
set -eu
rm -f sglang.cid
exec docker run \
  --pull never \
  --cidfile sglang.cid \
  --network host \
  --restart no \
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
  --env HOME=/tmp \
  --env USER=llm \
  --env HF_HOME=/models \
  --env HF_HUB_DISABLE_TELEMETRY=1 \
  --entrypoint sglang lmsysorg/sglang:v0.5.23 serve Qwen/Qwen3-30B-A3B-FP8 \
  --host 127.0.0.1 \
  --port 30000 \
  --served-model-name plan-b \
  --revision ad44e777 \
  --context-length 4096 \
  --max-running-requests 32 \
  --chunked-prefill-size 2048 \
  --enable-mixed-chunk \
  --mem-fraction-static 0.749 \
  --kv-cache-dtype auto \
  --sampling-defaults openai \
  --random-seed 0 \
  --enable-metrics \
  --enable-cache-report \
  --log-level-http warning
# Why each setting has its value:
#   HF_HUB_DISABLE_TELEMETRY 1: the hub library reports nothing
#   --host 127.0.0.1: reachable from this machine only
#   --port 30000: where the client sends
#   --served-model-name plan-b: the name that requests use, the same for every engine
#   --revision ad44e777: the weights that were chosen, whatever is uploaded later
#   --context-length 4096: context of 4,096 tokens, input plus output (requirements)
#   --max-running-requests 32: largest number of requests in one step
#   --chunked-prefill-size 2048: tokens in one step, stated because every engine has a default of its own
#   --enable-mixed-chunk: a long prompt must not pause running answers, as in the others
#   --mem-fraction-static 0.749: KV cache 60.0 GiB, weights 31.2 of 121.7 GiB (sizing). It means: fraction of the device's total for weights and KV pool; activations and graphs live in the rest
#   --kv-cache-dtype auto: precision of the KV cache in the sizing
#   --sampling-defaults openai: the model's file must not change the sampling
#   --random-seed 0: runs can be repeated
#   --enable-metrics: the metrics page is off by default
#   --enable-cache-report: cached tokens are reported with each answer
#   --log-level-http warning: no access line per request
