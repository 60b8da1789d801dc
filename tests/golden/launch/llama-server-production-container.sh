#!/bin/sh
# llama.cpp llama-server b11434 with /models/plan-b-q8_0.gguf, purpose production.
# Written by Flipline from the sizing. Not tried on a GPU, in a container or on a cluster by Flipline.
# ! Digest not known: pin it before use. After docker pull ghcr.io/ggml-org/llama.cpp:server-cuda-b11434, this prints it: docker image inspect --format '{{index .RepoDigests 0}}' ghcr.io/ggml-org/llama.cpp:server-cuda-b11434 (tag by the project's scheme for builds, not pulled; entry point as in its CUDA Dockerfile).
# ! LLAMA_API_KEY: lines NAME=key in /etc/llm/llama-server.env, readable by root only. A key covers every route but health and the page of the web UI; open without it: /health, /v1/health.
# ! /srv/models must be readable by user 10001 and hold the file.
set -eu
exec docker run \
  --detach \
  --name llama-server \
  --restart unless-stopped \
  --publish 127.0.0.1:8080:8080 \
  --log-opt max-size=50m \
  --log-opt max-file=5 \
  --gpus 1 \
  --ulimit memlock=-1 \
  --user 10001:10001 \
  --read-only \
  --tmpfs /tmp:rw,exec,nosuid,nodev \
  --cap-drop ALL \
  --security-opt no-new-privileges \
  --volume /srv/models:/models:ro \
  --env-file /etc/llm/llama-server.env \
  --env HOME=/tmp \
  --env USER=llm \
  --entrypoint /app/llama-server ghcr.io/ggml-org/llama.cpp:server-cuda-b11434 \
  -m /models/plan-b-q8_0.gguf \
  --host 0.0.0.0 \
  --port 8080 \
  --alias plan-b \
  -np 12 \
  -c 49152 \
  -b 2048 \
  --cache-type-k f16 \
  --cache-type-v f16 \
  --cache-prompt \
  --metrics \
  --cors-origins localhost \
  --no-cors-credentials \
  --offline \
  --no-ui \
  --no-slots
# Why each setting has its value:
#   --host 0.0.0.0: inside the container; its port is published on 127.0.0.1 only
#   --port 8080: where the client sends
#   --alias plan-b: the name that requests use, the same for every engine
#   -np 12: largest number of requests in one step
#   -c 49152: KV for all slots: slots times tokens of one request
#   -b 2048: tokens in one step, stated because every engine has a default of its own
#   --cache-type-k f16: precision of the KV cache in the sizing
#   --cache-prompt: a prompt that begins like an earlier one is not computed again
#   --metrics: the metrics page is off by default
#   --cors-origins localhost: pages of other origins may not call it
#   --no-cors-credentials: a browser sends no credentials along
#   --offline: it loads the stated file and fetches nothing
#   --no-ui: no web page is served
#   --no-slots: /slots shows what each user is asking
