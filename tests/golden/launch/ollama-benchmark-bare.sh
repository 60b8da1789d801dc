#!/bin/sh
# Ollama 0.33.0 with plan-b, purpose benchmark.
# Written by Flipline from the sizing. Not tried on a GPU, in a container or on a cluster by Flipline.
# ! The command names no model: create or pull it as plan-b once the server runs.
set -eu
export OLLAMA_HOST=127.0.0.1:11434
export OLLAMA_CONTEXT_LENGTH=4096
export OLLAMA_NUM_PARALLEL=32
export OLLAMA_MAX_QUEUE=4096
export OLLAMA_KV_CACHE_TYPE=f16
export OLLAMA_KEEP_ALIVE=-1
export OLLAMA_MAX_LOADED_MODELS=1
export OLLAMA_NO_CLOUD=1
exec ollama serve
# Why each setting has its value:
#   OLLAMA_HOST 127.0.0.1:11434: reachable from this machine only
#   OLLAMA_CONTEXT_LENGTH 4096: context of 4,096 tokens, input plus output (requirements)
#   OLLAMA_NUM_PARALLEL 32: largest number of requests in one step
#   OLLAMA_MAX_QUEUE 4096: no load point is refused, as the others queue
#   OLLAMA_KV_CACHE_TYPE f16: precision of the KV cache in the sizing
#   OLLAMA_KEEP_ALIVE -1: no cold start inside a run
#   OLLAMA_MAX_LOADED_MODELS 1: nothing else takes memory
#   OLLAMA_NO_CLOUD 1: no request leaves for models in the cloud
