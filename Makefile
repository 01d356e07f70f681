# make           sets up and builds the program, build/holdfast
# make demo      the same, then trains and audits small models on embedded data and says where the report is
# make python    sets up and builds the program and the Python package
# make wheel     a wheel in dist/ with the package and the command, out of what make python builds
# make test      sets up, builds everything, runs every test
# make test-more what integrations need: transformers, lightning, shap, notebooks, mypy; after make test
# make docs      the documentation as a site with search, build/docs/index.html
# make sanitize  the C++ tests, torch included, in a debug build under the address sanitizer
# make golden    every command's values against the stored ones, experiments at quick scale too: tests/golden/README.md
# make bench     the benchmarks: each asserts its results before it reports a ratio
# make bench-cuda   attacks and training on a GPU against plain PyTorch; needs build-cuda/holdfast: docs/building.md
# make lint      formatting, static checks on changed files, ruff, the order of the stages, type names
# make install   PREFIX=/usr/local
# make fuzz      every fuzz target FUZZ_RUNS (1000000) times, or for FUZZ_SECONDS each; writes its table to docs/reliability.md
# make faults    1,000 kills at file calls and 10,000 damaged inputs; writes its table to docs/reliability.md
# make clean     removes the build folders

PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
FUZZ_RUNS ?= 1000000
FUZZ_SECONDS ?= 0
BASE ?= HEAD~1

.PHONY: all setup setup-python setup-test build demo python wheel test test-more docs release asan sanitize golden bench bench-cuda lint install fuzz faults clean

all: build

setup:
	@tools/setup.sh

setup-python:
	@tools/setup.sh python

setup-test:
	@tools/setup.sh test

build: setup
	@tools/build.sh program $(JOBS)

demo: build
	@tools/demo.sh

python: setup-python
	@tools/build.sh python $(JOBS)

wheel: python
	@tools/wheel.sh build dist

release: setup-test
	@tools/build.sh release $(JOBS)

# The torch-free parts under the sanitizers first; the summary of the whole suite comes last.
test: release asan
	@ctest --preset release -j $(JOBS)

asan: setup-test
	@tools/build.sh asan $(JOBS)
	@ctest --preset asan -j $(JOBS)

test-more: setup-test
	@tools/build.sh release $(JOBS)
	@tools/test_more.sh

docs: setup-python
	@tools/build.sh python $(JOBS)
	@tools/docs.sh

sanitize: setup-test
	@tools/build.sh sanitize $(JOBS)
	@ctest --preset sanitize -j $(JOBS)

golden: setup-test python
	@.venv/bin/python tests/golden/golden.py check --full

bench: setup-test
	@tools/build.sh bench $(JOBS)
	@tools/bench.sh

PYTHON ?= python3
bench-cuda:
	@$(PYTHON) bench/cuda_attack.py --holdfast build-cuda/holdfast
	@$(PYTHON) bench/cuda_train.py --holdfast build-cuda/holdfast
	@$(PYTHON) bench/cuda_details.py --holdfast build-cuda/holdfast

lint:
	@tools/setup.sh lint
	@HOLDFAST_WERROR=ON tools/build.sh lint $(JOBS)
	@tools/lint.sh $(BASE)

install: build
	@cmake --install build --prefix $(PREFIX)

faults: build
	@tools/setup.sh test
	@nice -n 19 .venv/bin/python tests/faults/faults.py --kills 1000 --inputs 10000 --write

fuzz:
	@tools/setup.sh fuzz
	@tools/build.sh fuzz $(JOBS)
	@tools/fuzz.sh $(FUZZ_RUNS) $(FUZZ_SECONDS)

clean:
	rm -rf build build-debug build-asan build-sanitize build-fuzz build-lint build-wheel
