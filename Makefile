# Two commands do all set-up: `make demo` shows a verdict, `make test` runs the checks that a change has to pass.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# What Python compiled is kept whatever the shell says: each of the many processes of tests would compile it anew.
unexport PYTHONDONTWRITEBYTECODE
# uv takes a third of the time of pip, which installs only uv.
UV_INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python
# uv was seen to crash at its end, when everything was installed: a call that fails is repeated once.
uv_install = $(UV_INSTALL) $1 || $(UV_INSTALL) $1
EXAMPLE := examples/problems/larder
# As root it brings a Docker daemon where none answers; without one the tests that need it are skipped.
WITH_DOCKER := $(BIN)/python tests/with_docker.py
# The same for Debian's Chromium.
WITH_BROWSER := $(BIN)/python tests/with_browser.py

.PHONY: help demo test long proof flaky unit lint fuzz bench attacks faults soak kills service audit licences lock schema release vm install clean

help:
	@echo "make demo    evaluate an example and show the result"
	@echo "make test    style, types, layers, tests"
	@echo "make proof   make demo, test, long and vm in a fresh Debian system; as root"
	@echo "make long    the tests that are too long for make test"
	@echo "make flaky   run the tests TIMES=5 times on a busy machine and list those that ever failed"
	@echo "make unit    the quick tests only"
	@echo "make bench   measure against bare pytest, for docs/performance.md"
	@echo "make vm TARGET=NAME   boot another system in QEMU and check slop-code in it; SHORT=1 ONLY=WORDS; as root"
	@echo "make attacks CORPUS=DIR   run a corpus of hostile submissions"
	@echo "make faults  break evaluations at random moments; FAULTS=500 SEED=N"
	@echo "make fuzz    random and damaged input for everything that is parsed; FUZZ=5000 SEED=N"
	@echo "make lock    pin the test tools, scb-check, the development tools and what tests need anew"
	@echo "make schema  write the JSON Schema of evaluation.json anew"
	@echo "make soak    TIMES=50 CASES=small|all: evaluate the examples over and over, idle and under load"
	@echo "make kills   SECONDS=3600: evaluate in a running evaluator while its processes are killed at random"
	@echo "make service SECONDS=600: 64 clients of a reward service, whose processes and itself are killed at random"
	@echo "make audit   check pinned dependencies for known vulnerabilities"
	@echo "make licences   write the list of licences anew"
	@echo "make release build wheels and sdist into dist/, with their checksums"
	@echo "make clean   remove what the others made here"

install: $(VENV)/.installed

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$$($(PYTHON) --version): slop-code needs Python 3.11 or newer; name one, as in make PYTHON=python3.12 demo" >&2; exit 1; }
	@mkdir -p $(VENV) 2>/dev/null && test -w $(VENV) || \
	  { echo "$(CURDIR): this user may not write here; clone the repository into a folder of your own" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	  rm -rf $(VENV); test "$$(id -u)" = 0 && apt-get -qq update && apt-get -qq install -y python3-venv && \
	  $(PYTHON) -m venv $(VENV); } || { echo "$(PYTHON) -m venv does not work; install python3-venv" >&2; exit 1; }

HELPER := $(wildcard src/slop_code/execution/helper/*.[ch])
$(VENV)/.installed: pyproject.toml requirements-dev.lock hatch_build.py $(HELPER) | $(BIN)/python
	@echo "· installing into $(VENV): up to $$(grep -c '^[^ #].*==' requirements-dev.lock) packages; what no cache has is downloaded, at most about 70 MB"
	@awk '/^uv==/ {found = 1} found; found && !/\\$$/ {exit}' requirements-dev.lock > $(VENV)/uv.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(VENV)/uv.lock
	@$(call uv_install,--require-hashes -r requirements-dev.lock)
	@echo "· building the native helper; without a C compiler that links statically, ziglang is downloaded for it (about 100 MB)"
	@$(call uv_install,--no-deps --editable .)
	@$(BIN)/python -m compileall -q src
	@touch $@

# For tests and benchmarks alone: these are large, and nothing else needs them.
$(VENV)/.test: requirements-test.lock $(VENV)/.installed
	@echo "· installing what tests need into $(VENV)"
	@$(call uv_install,--require-hashes -r requirements-test.lock)
	@touch $@

# Debian's packages that tests need, and images made of them.
$(VENV)/.system: tests/with_browser.py tests/with_docker.py tests/private_daemon.py | $(BIN)/python
	@$(WITH_BROWSER) $(WITH_DOCKER) true
	@touch $@

demo: install
	$(BIN)/slop-code eval-snapshot $(EXAMPLE)/solutions/checkpoint_3 -p $(EXAMPLE) -c 3 -o out/demo

# Reading the tests keeps what Python and pytest compiled of them: workers that start together would each compile them all.
$(VENV)/.compiled: $(VENV)/.test
	@$(BIN)/python -m pytest --collect-only -qq > /dev/null || true
	@touch $@

# What comes from PyPI and what comes from Debian is installed side by side.
test:
	@$(MAKE) --no-print-directory --jobs=3 lint $(VENV)/.system $(VENV)/.compiled
	$(WITH_BROWSER) $(WITH_DOCKER) $(BIN)/python -m pytest -n auto -m "not long"

long: install $(VENV)/.test
	$(WITH_BROWSER) $(WITH_DOCKER) $(BIN)/python -m pytest -n auto -m long --durations=40 --durations-min=10

# What is committed, in a system that has nothing but the packages of the README, and in a machine of the next Debian.
proof:
	$(PYTHON) tests/pristine.py "make demo" "make test" "make long" "make vm SHORT=1 TARGET=debian13-$$(uname -m)"

# A machine of another system, from packages of the mirrors that the host's apt uses.
TARGET ?= debian13-x86_64
vm: install
	PYTHONPATH=tests $(BIN)/python -m machines $(TARGET) $(if $(SHORT),--short) $(if $(ONLY),--only "$(ONLY)")

flaky: TIMES = 5
flaky: install $(VENV)/.test
	$(WITH_BROWSER) $(WITH_DOCKER) $(BIN)/python -m tests.stability.flaky --times $(TIMES) -n auto -m "not long"

# Two halves side by side: each reads only its own tests, which takes half as long as all of them for each worker.
# Files in memory save a third of the time of the tests of runs. The rules of the architecture, which parse every file,
# take as long as all tests of one half.
# A pytest without them takes a fifth less time.
UNNEEDED := anyio ctrf doctest hypothesispytest junitxml legacypath logging metadata platformdirs pytest_jsonreport \
  stepwise subtests xdist
MEMORY := $(if $(wildcard /dev/shm/.),TMPDIR=/dev/shm)
UNIT := env $(MEMORY) $(BIN)/python -m pytest -q $(UNNEEDED:%=-p no:%) -m "not e2e"
HALF := tests/runs tests/reporting tests/comparison tests/verification tests/docs tests/release tests/bridges tests/quality
.PHONY: unit-half unit-rest
unit: install $(VENV)/.test
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target unit-half unit-rest
unit-half:
	@$(UNIT) $(HALF)
unit-rest:
	@$(UNIT) tests $(HALF:%=--ignore=%) --ignore=tests/test_architecture.py

# Types are checked against the packages of the extras, which tests need as well.
lint: install $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Writes the table of docs/performance.md anew.
bench: install $(VENV)/.test
	$(WITH_BROWSER) $(WITH_DOCKER) $(BIN)/python -m benchmarks --page docs/performance.md

# A corpus of hostile submissions that brings its own runner; as root the boxes' own user is the host's root.
attacks: install
	@test -f "$(CORPUS)/run.py" || { echo "make attacks CORPUS=DIR: no run.py in '$(CORPUS)'" >&2; exit 2; }
	EVAL_CMD="$(abspath $(BIN))/slop-code eval-snapshot {submission} -p {problem} -c {checkpoint} -e local -o {out}" \
	  SCBENCH_CACHE_DIR="$${SCBENCH_CACHE_DIR:-$$HOME/.cache/slop-code}" \
	  $(BIN)/python $(CORPUS)/run.py --allow-root

# The seed determines the faults and their moments. Without SEED, a new seed is chosen.
FAULTS ?= 500
IN_DOCKER := kill kill-group terminate interrupt interrupt-twice interrupt-group daemon-hidden daemon-killed
PERFORM = $(BIN)/python -m tests.faults $(if $(SEED),--seed $(SEED))
# The command with `--kinds` for the requested kinds; nothing if none of them applies.
of_kinds = $(if $(KINDS),$(if $2,$1 --kinds $2),$1)
faults: install $(VENV)/.test
	$(call of_kinds,$(PERFORM) --faults $(FAULTS),$(filter-out daemon-%,$(KINDS)))
	$(call of_kinds,$(WITH_DOCKER) $(PERFORM) --sandbox docker --faults $(shell expr $(FAULTS) / 20 + 1),$(filter $(IN_DOCKER),$(KINDS)))

# FUZZ: examples for each property. Without SEED, a new seed is chosen, and shown with the command.
FUZZ ?= 5000
fuzz: SEED ?= $(shell date +%s)
fuzz: install $(VENV)/.test
	FUZZ=$(FUZZ) $(BIN)/python -m pytest -n auto --timeout 0 --hypothesis-profile long --hypothesis-seed $(SEED) tests/fuzz

lock: install
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade \
	  src/slop_code/evaluation/test-tools.in -o src/slop_code/evaluation/test-tools.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.12 --generate-hashes --no-emit-index-url --no-header --upgrade \
	  src/slop_code/quality/scb-check.in -o src/slop_code/quality/scb-check.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade \
	  pyproject.toml --group dev -o requirements-dev.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade \
	  pyproject.toml --group test --extra ray --extra parquet --extra serve --constraint requirements-dev.lock -o requirements-test.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade \
	  --group release --constraint requirements-dev.lock -o requirements-release.lock
	for part in "--extra harbor" "--extra inspect" "--group nemo-gym" "--group verifiers"; do \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.12 --generate-hashes --no-emit-index-url --no-header --upgrade \
	    pyproject.toml $$part -o tests/bridges/locks/$${part##* }.lock || exit 1; done
	$(BIN)/python .ci/licences.py docs/reference/licences.md

schema: install
	$(BIN)/python -c "import json; from slop_code.evaluation.report import json_schema; print(json.dumps(json_schema(), indent=2))" \
	  > src/slop_code/evaluation/evaluation.schema.json

TIMES ?= 50
CASES ?= small
soak: install $(VENV)/.test
	$(WITH_DOCKER) $(BIN)/python -m tests.stability.soak --times $(TIMES) --cases $(CASES)

SECONDS ?= 3600
kills: install $(VENV)/.test
	$(BIN)/python -m tests.stability.kills --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

service: SECONDS = 600
service: install $(VENV)/.test
	$(BIN)/python -m tests.stability.service_load --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

# The script ends with 3 where the advisories could not be asked for.
audit: install $(VENV)/.test
	@$(BIN)/python .ci/audit.py

licences: install $(VENV)/.test
	$(BIN)/python .ci/licences.py docs/reference/licences.md

release: install
	$(BIN)/python .ci/release.py dist

clean:
	rm -rf $(VENV) out dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	rm -f src/slop_code/execution/helper/slopbox-*
