# make demo    sets up, builds, trains and audits small models on embedded data, and says where the report is
# make test    sets up, builds, runs every test
# make golden  every command's values against the stored ones, experiments at quick scale too: docs in tests/golden/README.md
# make bench   the benchmarks: each asserts its results before it reports a ratio
# make lint    formatting, static checks on changed files, ruff, the order of the stages
# make install PREFIX=/usr/local
# make fuzz    every fuzz target for FUZZ_SECONDS (60)

PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
BASE ?= HEAD~1

.PHONY: all setup setup-test build demo test asan golden bench lint install fuzz clean

all: build

setup:
	@tools/setup.sh

setup-test:
	@tools/setup.sh test

build: setup
	@tools/build.sh release $(JOBS)

demo: build
	@tools/demo.sh

# The torch-free parts under the sanitizers first; the summary of the whole suite comes last.
test: setup-test build asan
	@ctest --preset release -j $(JOBS)

asan: setup
	@tools/build.sh asan $(JOBS)
	@ctest --preset asan -j $(JOBS) --quiet

golden: setup-test build
	@.venv/bin/python tests/golden/golden.py check --full

bench: setup
	@tools/build.sh bench $(JOBS)
	@tools/bench.sh

lint:
	@tools/setup.sh lint
	@tools/lint.sh $(BASE)

install: build
	@cmake --install build --prefix $(PREFIX)

fuzz:
	@tools/setup.sh fuzz
	@tools/build.sh fuzz $(JOBS)
	@tools/fuzz.sh $(FUZZ_SECONDS)

clean:
	rm -rf build build-debug build-asan build-fuzz
