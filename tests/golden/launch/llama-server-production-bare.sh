#!/bin/sh
# llama.cpp llama-server b11434 with /srv/models/plan-b-q8_0.gguf, purpose production.
# Written by Flipline from the sizing. Not tried on a GPU, in a container or on a cluster by Flipline.
# ! LLAMA_API_KEY: export it before the start. A key covers every route but health and the page of the web UI; open without it: /health, /v1/health.
set -eu
: "${LLAMA_API_KEY:?holds the API key, state it before the start}"; export LLAMA_API_KEY
exec llama-server \
  -m /srv/models/plan-b-q8_0.gguf \
  --host 127.0.0.1 \
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
#   --host 127.0.0.1: reachable from this machine only
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
