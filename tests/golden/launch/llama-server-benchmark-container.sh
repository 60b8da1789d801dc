#!/bin/sh
# llama.cpp llama-server b11434 with /models/plan-b-q8_0.gguf, purpose benchmark.
# Written by Flipline from the sizing. Not tried on a GPU, in a container or on a cluster by Flipline.
# ! Digest not known: pin it before use. After docker pull ghcr.io/ggml-org/llama.cpp:server-cuda-b11434, this prints it: docker image inspect --format '{{index .RepoDigests 0}}' ghcr.io/ggml-org/llama.cpp:server-cuda-b11434 (tag by the project's scheme for builds, not pulled; entry point as in its CUDA Dockerfile).
# ! /srv/models must be readable by user 10001 and hold the file.
set -eu
rm -f llama-server.cid
exec docker run \
  --pull never \
  --cidfile llama-server.cid \
  --network host \
  --restart no \
  --gpus 1 \
  --ulimit memlock=-1 \
  --user 10001:10001 \
  --read-only \
  --tmpfs /tmp:rw,exec,nosuid,nodev \
  --cap-drop ALL \
  --security-opt no-new-privileges \
  --volume /srv/models:/models:ro \
  --env HOME=/tmp \
  --env USER=llm \
  --entrypoint /app/llama-server ghcr.io/ggml-org/llama.cpp:server-cuda-b11434 \
  -m /models/plan-b-q8_0.gguf \
  --host 127.0.0.1 \
  --port 8080 \
  --alias plan-b \
  -np 32 \
  -c 131072 \
  -b 2048 \
  --cache-type-k f16 \
  --cache-type-v f16 \
  --cache-prompt \
  --seed 0 \
  --metrics \
  --cors-origins localhost \
  --no-cors-credentials \
  --offline
# Why each setting has its value:
#   --host 127.0.0.1: reachable from this machine only
#   --port 8080: where the client sends
#   --alias plan-b: the name that requests use, the same for every engine
#   -np 32: largest number of requests in one step
#   -c 131072: KV for all slots: slots times tokens of one request
#   -b 2048: tokens in one step, stated because every engine has a default of its own
#   --cache-type-k f16: precision of the KV cache in the sizing
#   --cache-prompt: stated, so that every candidate has the same
#   --seed 0: runs can be repeated
#   --metrics: the metrics page is off by default
#   --cors-origins localhost: pages of other origins may not call it
#   --no-cors-credentials: a browser sends no credentials along
#   --offline: it loads the stated file and fetches nothing
