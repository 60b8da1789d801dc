#!/bin/sh
# Hugging Face TGI 3.3.7 with Qwen/Qwen3-30B-A3B-FP8, purpose production.
# Written by Flipline from the sizing. Not tried on a GPU, in a container or on a cluster by Flipline.
# ! The image: as published it starts as root only (text-generation-inference#3082): build an image of your own from it with RUN chmod 755 /root.
# ! Shared memory of 1 GB: README at db931fcf.
# ! Digest not known: pin it before use. After docker pull ghcr.io/huggingface/text-generation-inference:3.3.7, this prints it: docker image inspect --format '{{index .RepoDigests 0}}' ghcr.io/huggingface/text-generation-inference:3.3.7 (tag of the release that was read, by the scheme of its README, which still names 3.3.5; not pulled).
# ! API_KEY: lines NAME=key in /etc/llm/tgi.env, readable by root only. A key covers generation and /tokenize; open without it: /health, /ping, /info, /metrics, /v1/models, /chat_tokenize, /docs.
# ! /srv/models must belong to user 10001; the model has to be there or is downloaded to it.
set -eu
exec docker run \
  --detach \
  --name tgi \
  --restart unless-stopped \
  --publish 127.0.0.1:3000:3000 \
  --log-opt max-size=50m \
  --log-opt max-file=5 \
  --gpus 1 \
  --ulimit memlock=-1 \
  --ipc private \
  --shm-size 1g \
  --user 10001:10001 \
  --read-only \
  --tmpfs /tmp:rw,exec,nosuid,nodev \
  --cap-drop ALL \
  --security-opt no-new-privileges \
  --volume /srv/models:/models \
  --env-file /etc/llm/tgi.env \
  --env HOME=/tmp \
  --env USER=llm \
  --env HF_HOME=/models \
  --env PREFIX_CACHING=true \
  --env HF_HUB_DISABLE_TELEMETRY=1 \
  --entrypoint text-generation-launcher ghcr.io/huggingface/text-generation-inference:3.3.7 \
  --model-id Qwen/Qwen3-30B-A3B-FP8 \
  --hostname 0.0.0.0 \
  --port 3000 \
  --revision ad44e777 \
  --max-total-tokens 4096 \
  --max-input-tokens 4095 \
  --max-batch-size 12 \
  --max-concurrent-requests 62 \
  --max-batch-prefill-tokens 4096 \
  --cuda-memory-fraction 0.798 \
  --usage-stats off \
  --cors-allow-origin http://localhost
# Why each setting has its value:
#   PREFIX_CACHING true: a prompt that begins like an earlier one is not computed again
#   HF_HUB_DISABLE_TELEMETRY 1: the hub library reports nothing either
#   --hostname 0.0.0.0: inside the container; its port is published on 127.0.0.1 only
#   --port 3000: where the client sends
#   --revision ad44e777: the weights that were chosen, whatever is uploaded later
#   --max-total-tokens 4096: context of 4,096 tokens, input plus output (requirements)
#   --max-input-tokens 4095: one token less than a whole request, else longer prompts are refused
#   --max-batch-size 12: largest number of requests in one step
#   --max-concurrent-requests 62: requests in one step and those that may wait
#   --max-batch-prefill-tokens 4096: at least the longest prompt, or it does not start
#   --cuda-memory-fraction 0.798: KV cache 60.0 GiB, weights 31.2, reserve 6.0 of 121.7 GiB (sizing). It means: fraction of the device's total that the process may allocate; warm-up gives what is left to the KV cache
#   --usage-stats off: no usage statistics leave the machine
#   --cors-allow-origin http://localhost: pages of other origins may not call it
