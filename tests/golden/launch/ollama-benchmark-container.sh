#!/bin/sh
# Ollama 0.33.0 with plan-b, purpose benchmark.
# Written by Flipline from the sizing. Not tried on a GPU, in a container or on a cluster by Flipline.
# ! Digest as pulled by algernon28/vespera@0449b1eb, not pulled here.
# ! The command names no model: create or pull it as plan-b once the server runs.
# ! /srv/models must belong to user 10001; the model has to be there or is downloaded to it.
set -eu
rm -f ollama.cid
exec docker run \
  --pull never \
  --cidfile ollama.cid \
  --network host \
  --restart no \
  --gpus 1 \
  --ulimit memlock=-1 \
  --user 10001:10001 \
  --read-only \
  --tmpfs /tmp:rw,exec,nosuid,nodev \
  --cap-drop ALL \
  --security-opt no-new-privileges \
  --volume /srv/models:/models \
  --env HOME=/tmp \
  --env USER=llm \
  --env OLLAMA_MODELS=/models \
  --env OLLAMA_HOST=127.0.0.1:11434 \
  --env OLLAMA_CONTEXT_LENGTH=4096 \
  --env OLLAMA_NUM_PARALLEL=32 \
  --env OLLAMA_MAX_QUEUE=4096 \
  --env OLLAMA_KV_CACHE_TYPE=f16 \
  --env OLLAMA_KEEP_ALIVE=-1 \
  --env OLLAMA_MAX_LOADED_MODELS=1 \
  --env OLLAMA_NO_CLOUD=1 \
  --entrypoint ollama ollama/ollama:0.33.0@sha256:08ddf4b4dbfdc4fc1f5b0fe535915998581085402e307b57bb308db68460e372 serve
# Why each setting has its value:
#   OLLAMA_HOST 127.0.0.1:11434: reachable from this machine only
#   OLLAMA_CONTEXT_LENGTH 4096: context of 4,096 tokens, input plus output (requirements)
#   OLLAMA_NUM_PARALLEL 32: largest number of requests in one step
#   OLLAMA_MAX_QUEUE 4096: no load point is refused, as the others queue
#   OLLAMA_KV_CACHE_TYPE f16: precision of the KV cache in the sizing
#   OLLAMA_KEEP_ALIVE -1: no cold start inside a run
#   OLLAMA_MAX_LOADED_MODELS 1: nothing else takes memory
#   OLLAMA_NO_CLOUD 1: no request leaves for models in the cloud
