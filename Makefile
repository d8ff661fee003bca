# All build, test and measurement commands of this checkout. `make help` lists them.
TARGET := $(or $(CARGO_TARGET_DIR),target)
PYTHON := .venv/bin/python
# The tests of real programs run the same artifacts that `cargo test` builds: one profile, built
# once.
TEST_BIN := $(TARGET)/debug
# Number of concurrent tests. Most of them wait for programs and disks most of the time.
TEST_JOBS := $(shell expr 3 \* $$(nproc))
PYTEST = STRIPEWISE_BIN_DIR=$(TEST_BIN) $(PYTHON) -m pytest -n $(TEST_JOBS) --dist worksteal

help:
	@echo 'make demo       a real MPI program and a real h5py program on emulated servers, under every layout'
	@echo 'make test       all tests: units, properties, real programs'
	@echo 'make build      stripewise, its library and stripewise-bench (release) in $(TARGET)/release, MPI programs and libraries in build/'
	@echo 'make install PREFIX=DIR  builds and installs, without root; make uninstall PREFIX=DIR takes it away'
	@echo 'make dist       the same as an archive in build/dist, which can be unpacked anywhere'
	@echo 'make lint       formatting and clippy, warnings are errors'
	@echo 'make bench      the micro benchmarks'
	@echo 'make test-long  crash and fuzz campaigns, and the tests with long variants (an hour)'
	@echo 'make test-mutations   takes out what keeps the invariants, one by one: the tests notice (15 minutes)'
	@echo 'make throttled-disk   the disks that take their time, for real file systems (testbed/disks; needs FUSE)'
	@echo 'make cephfs-bed a CephFS on this machine, to test and measure on: installs Ceph, says how (testbed/cephfs; needs root, FUSE)'
	@echo 'make test-cephfs  brings it up, runs what is tested on it, takes it down (some minutes; STRIPEWISE_LONG=1: more)'
	@echo 'make test-nodes several nodes on this machine, with Slurm and a CephFS that each mounts: tests on all of them (some minutes; testbed/nodes)'
	@echo "make test-romio ROMIO=DIR  ROMIO's own tests on two nodes, from the sources of Debian's MPICH, which it fetches into DIR (a minute)"
	@echo 'make test-orangefs ORANGEFS=DIR  the same on an OrangeFS that is installed in DIR, or built from its source tree DIR (testbed/orangefs)'
	@echo 'make bench-cephfs  layouts, PSA, the cache and replicas measured on it, and the page bench/results.d/cephfs.md (an hour)'
	@echo 'make evaluate   the experiments of the papers: simulated at their full size, measured on emulated servers (an hour), and the pages'
	@echo 'make evaluation-pages  docs/evaluation.md and its drawings anew from the records in docs/evaluation'
	@echo 'make setup      install what is missing (Debian packages, .venv), check the Rust version'
	@echo 'make clean      remove what was built (not .venv)'
	@echo
	@echo 'Options of the demo: make demo DEMO="--quick --dir D --keep"; of the measurements on CephFS: make bench-cephfs BENCH="--repeats 1"'
	@echo '         of the tests: make test TEST_JOBS=N (so many at once; default: 3 per core)'

setup:
	@tools/setup.sh

workloads: setup
	@$(MAKE) --no-print-directory -s -C workloads
	@$(MAKE) --no-print-directory -s -C mpi
	@$(MAKE) --no-print-directory -s -C testbed/nodes

throttled-disk:
	@tools/setup.sh disks
	@$(MAKE) --no-print-directory -s -C testbed/disks

cephfs-bed:
	@tools/setup.sh cephfs
	@$(MAKE) --no-print-directory -s -C testbed/disks
	@$(MAKE) --no-print-directory -s -C testbed/cephfs

build: workloads
	cargo build --release --workspace

# What an installation has. Needs Rust and a C compiler; the libraries for MPI are built for the
# MPIs that are there.
MPIS_HERE = $(foreach mpi,mpich openmpi,$(if $(shell command -v mpicc.$(mpi)),$(mpi)))
build-release:
	cargo build --release -p stripewise -p stripewise-preload
	@$(MAKE) --no-print-directory -s -C mpi MPIS="$(MPIS_HERE)"

install: build-release
	@BIN_DIR=$(TARGET)/release tools/install.sh install "$(PREFIX)"

uninstall:
	@tools/install.sh uninstall "$(PREFIX)"

dist: build-release
	@BIN_DIR=$(TARGET)/release tools/install.sh dist build/dist

demo: build
	$(TARGET)/release/stripewise-bench demo $(DEMO)

build-test:
	cargo build --workspace --profile test

# All tests run even if some fail; the exit status tells whether all passed.
ALL_TESTS = status=0; \
	RUST_TEST_THREADS=$(TEST_JOBS) cargo test --workspace --no-fail-fast || status=1; \
	$(PYTEST) -q --durations=10 tests || status=1; \
	exit $$status

test: workloads build-test
	@$(ALL_TESTS)

test-long: workloads build-test
	@export STRIPEWISE_LONG=1; $(ALL_TESTS)

# To run next to another testbed: CEPHFS_BED="--base DIR --port PORT".
test-cephfs: workloads cephfs-bed build-test
	STRIPEWISE_BIN_DIR=$(TEST_BIN) tools/test-bed.sh cephfs $(PYTHON)

# The same tests run in `make test`, there on nodes with a plain shared directory.
test-nodes: workloads cephfs-bed build-test
	@tools/setup.sh nodes
	STRIPEWISE_BIN_DIR=$(TEST_BIN) tools/test-bed.sh nodes $(PYTHON)

# ROMIO: a directory for MPICH's sources.
ROMIO := /tmp/stripewise-romio

test-romio: workloads build-test
	@tools/setup.sh nodes
	tests=$$(testbed/nodes/romio.sh $(ROMIO)) && STRIPEWISE_ROMIO=$$tests STRIPEWISE_BIN_DIR=$(TEST_BIN) \
		$(PYTHON) -m pytest -q tests/nodes/test_romio.py

# ORANGEFS: where OrangeFS is installed, or its source tree. To run next to another testbed:
# ORANGEFS_BED="--base DIR --port PORT".
test-orangefs: workloads build-test
	@tools/setup.sh orangefs
	STRIPEWISE_BIN_DIR=$(TEST_BIN) tools/test-bed.sh orangefs $(PYTHON) $(ORANGEFS)

test-mutations: workloads
	$(PYTHON) tests/mutations

# Runs only missing experiments. The records stay in the directory; docs/evaluation has a copy.
EVALUATION := $(or $(STRIPEWISE_EVALUATION_DIR),$(TARGET)/evaluation)
EVALUATE = $(TARGET)/release/stripewise-bench evaluate

evaluate: build
	$(EVALUATE) all --simulated --dir $(EVALUATION)
	$(EVALUATE) all --measured --quick --dir $(EVALUATION)
	@mkdir -p docs/evaluation
	cp $(EVALUATION)/simulated.json $(EVALUATION)/emulated.json docs/evaluation/
	@$(MAKE) --no-print-directory evaluation-pages

evaluation-pages:
	cargo build --release -p stripewise-bench
	$(EVALUATE) --dir docs/evaluation --render docs

# Runs only missing measurements. The records stay in the target directory.
bench-cephfs: build cephfs-bed
	$(TARGET)/release/stripewise-bench cephfs all --records $(TARGET)/cephfs.jsonl \
		--document docs/evaluation/cephfs.json --page bench/results.d/cephfs.md $(BENCH)

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

bench:
	cargo bench --workspace

clean:
	cargo clean
	rm -rf build

.PHONY: help setup workloads throttled-disk cephfs-bed build demo build-release install uninstall dist build-test test test-long test-mutations test-cephfs test-nodes test-romio test-orangefs bench-cephfs evaluate evaluation-pages lint bench clean
