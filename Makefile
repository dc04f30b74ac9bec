# SPDX-License-Identifier: Apache-2.0
#
# The front door. Everything works on a bare Debian 12 (only `make` itself must be there), as root or as a user with
# sudo: each target first installs what it needs and lacks, from deploy/packages.txt.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

JOBS ?= $(shell nproc)
# Tests wait for much of their time: for a limit, a retry, the end of a process. So there can be more than processors (ADR 65).
TEST_JOBS ?= $(JOBS)
PREFIX ?= /usr/local
DESTDIR ?=
SECONDS_EACH ?= 60
SOAK_SECONDS ?= 300
SAMPLES ?= 10000
# make check TIDY=off leaves clang-tidy out (`make tidy` is it alone)
TIDY ?= on
SINCE ?=
MOST ?=
CONTRACT ?= ../shared/contract
# Narrow a run: make test TESTS='escape:'  (a regular expression for ctest -R)
TESTS ?=
# Narrow the build as well: make asan SUITES='unit gateway'  (folders of tests/; gateway is also tests/unit/gateway)
SUITES ?=
suites = $(if $(SUITES),$(addsuffix _suite,$(SUITES)),all)
only = $(or $(TESTS),$(if $(SUITES),^($(subst $(space),|,$(strip $(SUITES)))):))
empty :=
space := $(empty) $(empty)

setup = scripts/setup.sh
# Says what it did only when something went wrong; configuring again when nothing changed takes a moment.
configure = log=$$(mktemp); cmake --preset $(1) >$$log 2>&1 || { cat $$log >&2; rm -f $$log; exit 1; }; \
            grep -A4 'CMake Warning' $$log >&2 || true; rm -f $$log
compile = cmake --build --preset $(1) -j $(JOBS) --

.PHONY: help
help:  ## this list
	@echo "Cofferdam: a watertight wall around every tool call. After \`make build\` the program is build/coffer."
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | column -t -s '|' 2>/dev/null \
	  || sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1 - \2/p' Makefile
	@echo
	@echo "Variables: JOBS (of the compiler), TEST_JOBS, PREFIX, DESTDIR, TESTS (ctest -R), SUITES (asan, coverage), SECONDS_EACH (fuzz), SOAK_SECONDS (soak), SAMPLES (bench-fair), CONTRACT (directory of boundary.py)"

.PHONY: setup
setup:  ## install every Debian package that any target needs
	@$(setup) demo test conformance check fuzz tsan coverage bench package
	@$(setup) vm

.PHONY: demo
demo:  ## build, then run real commands and real attacks in boundaries and show what each could do
	@$(setup) demo
	@$(call configure,release)
	@$(call compile,release) coffer cofferd
	@scripts/demo.sh

.PHONY: build
build:  ## build/coffer, static and hardened, and build/cofferd, the daemon
	@$(setup) build
	@$(call configure,release)
	@$(call compile,release) coffer cofferd

.PHONY: all
all:
	@$(setup) test
	@$(call configure,release)
	@$(call compile,release) all

.PHONY: test
test: all  ## the whole suite: as root, then as an ordinary user, then the public contract
	@TESTS='$(TESTS)' CONTRACT='$(CONTRACT)' JOBS=$(TEST_JOBS) scripts/run_tests.sh build all

.PHONY: test-user
test-user: all  ## the suite as an ordinary user only
	@TESTS='$(TESTS)' CONTRACT='$(CONTRACT)' JOBS=$(TEST_JOBS) scripts/run_tests.sh build user

.PHONY: test-docs
test-docs: all  ## the examples of README.md and docs/, run and compared with what the pages say
	@ctest --test-dir build -L docs --no-tests=error --output-on-failure

.PHONY: conformance-mcp
conformance-mcp:  ## MCP's official conformance suite against the gateway (npm; about a minute)
	@$(setup) conformance
	@$(call configure,release)
	@$(call compile,release) mcp_fixtures
	@scripts/mcp_conformance.sh build/tests

.PHONY: mcp-clients
mcp-clients:  ## coffer mcp with MCP's official clients, and their reference servers wrapped (npm; about a minute)
	@$(setup) conformance
	@$(call configure,release)
	@$(call compile,release) coffer
	@scripts/mcp_clients.sh build/tests build/coffer

.PHONY: test-sdk
test-sdk: build  ## the Python and TypeScript clients against a real daemon and bad servers, and their quick starts
	@$(setup) test
	@$(call configure,release)
	@ctest --test-dir build -R '^sdk:|:sdk_types$$' --no-tests=error --output-on-failure

.PHONY: check
check:  ## formatting, clang-tidy, layers, file sizes, words, licences, shell scripts
	@$(setup) check
	@$(call configure,release)
	@$(call compile,release) coffer man
	@JOBS=$(JOBS) TIDY=$(TIDY) scripts/check.sh

.PHONY: compat
compat: build  ## real programs, CPython's and Perl's own tests outside and inside a boundary; writes docs/COMPATIBILITY.md
	@$(setup) compat
	@scripts/compat.sh --write
	@for who in $(if $(filter 0,$(shell id -u)),root user,user); do \
	  scripts/compat_cpython.py --again --write --who $$who && scripts/compat_perl.py --write --who $$who || exit 1; done

.PHONY: compat-short
compat-short: build  ## the part of it that CI runs
	@$(setup) compat-short
	@scripts/compat.sh --short
	@scripts/compat_cpython.py --again --short --result build/compat/short.json

.PHONY: tidy
tidy:  ## clang-tidy alone; SINCE=COMMIT: over what changed since then and what includes it; MOST: so many files of that
	@$(setup) check
	@$(call configure,release)
	@$(call compile,release) coffer
	@JOBS=$(JOBS) python3 scripts/tidy.py build $(if $(SINCE),--since $(SINCE)) $(if $(MOST),--most $(MOST))

# The build of `make asan` and `make fuzz`, which CI makes beside its tests.
.PHONY: asan-build
asan-build:
	@$(setup) test fuzz
	@$(call configure,asan)
	@$(call compile,asan) $(suites) fuzzers

.PHONY: asan
asan:  ## the suite under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(setup) test fuzz
	@$(call configure,asan)
	@$(call compile,asan) $(suites)
	@TESTS='$(only)' JOBS=$(TEST_JOBS) scripts/run_tests.sh build-asan self

.PHONY: tsan
tsan:  ## the unit tests under ThreadSanitizer
	@$(setup) tsan
	@$(call configure,tsan)
	@$(call compile,tsan) unit_tests
	@TESTS='unit:' JOBS=$(TEST_JOBS) scripts/run_tests.sh build-tsan self

.PHONY: coverage
coverage:  ## run the suite with gcov and write build-coverage/coverage.html
	@$(setup) coverage
	@$(call configure,coverage)
	@$(call compile,coverage) $(suites)
	@TESTS='$(only)' JOBS=$(TEST_JOBS) scripts/run_tests.sh build-coverage self
	@gcovr --root . --filter src/ --object-directory build-coverage --exclude-throw-branches \
	  --html-details build-coverage/coverage.html --print-summary

.PHONY: fuzz
fuzz:  ## run every fuzz target for SECONDS_EACH seconds (60)
	@$(setup) fuzz
	@$(call configure,asan)
	@$(call compile,asan) fuzzers
	@SECONDS_EACH=$(SECONDS_EACH) JOBS=$(JOBS) scripts/fuzz.sh build-asan

.PHONY: bench
bench:  ## measure against plain spawn, bubblewrap and crun; writes docs/BENCHMARKS.md
	@$(setup) bench
	@$(call configure,release)
	@$(call compile,release) coffer
	@scripts/bench.sh

.PHONY: bench-short
bench-short:  ## the same in about a minute, with fewer rounds
	@$(setup) bench
	@$(call configure,release)
	@$(call compile,release) coffer
	@scripts/bench.sh short

.PHONY: bench-gate
bench-gate:  ## measure the daemon: admission, policy, /healthz, memory; writes docs/BENCHMARKS_GATE.md
	@$(call configure,release)
	@$(call compile,release) coffer cofferd
	@scripts/bench_gate.sh

.PHONY: bench-fair
bench-fair:  ## what a tenant notices of a hostile one, and /healthz meanwhile: the table alone (SAMPLES=10000)
	@$(call configure,release)
	@$(call compile,release) coffer cofferd
	@DOCS= scripts/bench_gate.sh --only fairness --calls $(SAMPLES)

.PHONY: bench-mcp
bench-mcp:  ## measure MCP: first answer, calls over stdio, a wrapped server, 64 clients; writes docs/BENCHMARKS_MCP.md
	@$(call configure,release)
	@$(call compile,release) coffer call_in_process
	@python3 scripts/bench_mcp.py build >docs/BENCHMARKS_MCP.md.new
	@mv docs/BENCHMARKS_MCP.md.new docs/BENCHMARKS_MCP.md

.PHONY: bench-egress
bench-egress:  ## measure the way out: spliced and intercepted against direct and squid, latency, calls; writes docs/BENCHMARKS_EGRESS.md; BEFORE=COFFER: an earlier version beside it
	@$(setup) bench-egress
	@$(call configure,release)
	@$(call compile,release) coffer cofferd bench_egress_peer bench_egress_role bench_egress_start
	@python3 scripts/bench_egress.py build $(if $(BEFORE),--before $(BEFORE)) >docs/BENCHMARKS_EGRESS.md.new
	@mv docs/BENCHMARKS_EGRESS.md.new docs/BENCHMARKS_EGRESS.md

.PHONY: bench-record
bench-record:  ## measure the log (append, verify, size), audit verify, and audit list over a million calls
	@$(setup) bench
	@$(call configure,release)
	@$(call compile,release) coffer bench_log fill_state
	@scripts/bench_record.sh build

.PHONY: test-vm
test-vm: all  ## limits, posture and escape tests in a virtual machine with an older kernel and cgroup v2
	@$(setup) vm
	@scripts/vm.sh test

.PHONY: test-vm-short
test-vm-short: all
	@$(setup) vm
	@scripts/vm.sh short

.PHONY: test-vm-all
test-vm-all: all  ## the same, and once more on the other architecture
	@$(setup) vm vm-cross
	@scripts/vm.sh all

.PHONY: soak
soak: build  ## eight tenants, one hostile, and kills of every role, for SOAK_SECONDS (300); then everything is looked at
	@scripts/soak.py --seconds $(SOAK_SECONDS) --build build

.PHONY: soak-user
soak-user: build  ## the same as an ordinary user
	@scripts/soak.py --seconds $(SOAK_SECONDS) --build build --as-user

.PHONY: soak-large
soak-large: build  ## 10,000 calls of 1 MiB, 100,000 files in a session, 2,000 hostile clients: the gateway's memory (half an hour)
	@scripts/soak_large.py --build build

# The long forms of what .ci/run does in short. One that fails ends it.
.PHONY: nightly
nightly: all  ## races and kills in their thousands, an hour of fuzzing, sanitizers and clang-tidy over everything, half an hour of soak, other people's programs and suites, the virtual machines
	@scripts/idle_coffer.sh build
	@COFFER_RACE_TRIES=2000 ctest --test-dir build -R 'ANeighbourWho(Swaps|Exchanges)AllTheTime' --no-tests=error --output-on-failure --timeout 7200
	@KILLS=1000 COFFER_FAULTS_ALL=1 ctest --test-dir build -R '^daemon:Crash[.]|^faults:(Rungs|Level/RunKill)[.]' --no-tests=error --output-on-failure --timeout 7200
	@$(MAKE) tidy
	@$(MAKE) fuzz SECONDS_EACH=200
	@$(MAKE) asan
	@$(MAKE) tsan
	@$(MAKE) compat
	@$(MAKE) soak SOAK_SECONDS=1800
	@$(MAKE) soak-large
	@$(MAKE) test-vm-all
	@$(MAKE) test-install

.PHONY: test-fresh
test-fresh:  ## make demo and make test on a new Debian 12 in a directory, as root and as a user with sudo
	@$(setup) fresh
	@TESTS='$(TESTS)' scripts/fresh.sh

.PHONY: test-install
test-install: package  ## the Debian package on a new Debian 12 in a directory: apt install, the unit, run, serve
	@$(setup) fresh
	@scripts/install_test.sh build/packages/*.deb

.PHONY: install
install: build  ## put coffer, its unit, manual pages and completions below PREFIX (/usr/local)
	@$(call compile,release) coffer cofferd man package_docs
	@DESTDIR='$(DESTDIR)' cmake --install build --strip --prefix '$(PREFIX)'

.PHONY: package
package:  ## a Debian package in build/packages/
	@$(setup) package
	@$(call configure,release)
	@$(call compile,release) coffer cofferd man package_docs
	@scripts/package.sh build

.PHONY: format
format:  ## rewrite the sources with clang-format
	@$(setup) check
	@scripts/format.sh --fix

.PHONY: clean
clean:  ## remove every build directory
	rm -rf build build-dev build-asan build-tsan build-tidy build-coverage
