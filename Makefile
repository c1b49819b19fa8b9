# The two commands of the README, and what they are made of.

.PHONY: guide demo test test-fleet dist deb packages test-kernel fleet-peers lint fuzz-brief bench torture threads-under-load sanitize mutants trust shuffle links-alarms suites attachments kernel-advice kernel-study net-study kernel-order placement against-optimisers setup-lint kernel-clocks setup-demo setup-test setup-bench setup-kernels

# Make a real program faster and prove it; leaves demo-report/report.html.
demo: setup-demo
	cargo build --profile demo -p lineup -p lineup-heap
	scripts/demo

# `make test LINT=1`, as .ci/run has it: clippy while it compiles, with warnings as errors. `cargo clippy` would first check
# all that the tests then compile. Make has a LINT of its own, which is the name of a program.
ifneq ($(origin LINT),default)
export CLIPPY_ARGS := -D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
linted := --config '$(CURDIR)/.ci/cargo.toml'
endif

# Messages that `xtask test` finds the programs of tests in.
messages := --message-format json-render-diagnostics

# All that tests run and link, with the libraries that are loaded by name, in one run of cargo. Tests have a part in it: without
# them cargo would choose other features of what they share, and compile most of it a second time.
.PHONY: built
built:
	mkdir -p target
	cargo build $(linted) --workspace --lib --bins --tests --examples $(if $(linted),--benches) $(messages) >target/built.json
	cargo metadata --locked --format-version 1 >target/packages.json

# What few tests link: the runtime as its users have it, and its tests for another machine.
.PHONY: built-for-rest
built-for-rest: built
	cargo build --release -p lineup-runtime --lib
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc cargo build -p lineup-runtime \
	  --target aarch64-unknown-linux-gnu --lib --test imv --test clock --test trace --test imv_torture

# The whole product once: every command, one kernel, one program for each machine. What the build does not need is
# installed beside it.
test: setup-lint
	@scripts/setup test & setup=$$!; \
	  $(MAKE) --no-print-directory built; built=$$?; wait $$setup && exit $$built
	target/debug/xtask test $(TESTS)

# What `make test` leaves out: kernels of every machine, long studies, the programs for fleets and for agents, the examples
# of the documentation, fuzz targets.
.PHONY: test-all test-rest
test-all: test-rest test-fleet test-mcp test-doc fuzz-brief

test-rest: setup-kernels built-for-rest
	target/debug/xtask test --rest
	libclang=$$(scripts/libclang-fetch) && LIBCLANG_PATH=$$libclang target/debug/xtask test --every lineup-sources

.PHONY: test-doc
test-doc:
	cargo test $(linted) --workspace --doc

# The program for fleets, a workspace of its own: the query engine in it takes as long to build as all the rest.
fleet_build := RUSTC_WRAPPER='$(CURDIR)/fleet/scripts/rustc' cargo build $(linted) --lib --bins --tests \
  --manifest-path fleet/Cargo.toml
test-fleet: setup-test built
	cargo fmt --manifest-path fleet/Cargo.toml --check
	$(fleet_build) $(messages) >target/built-fleet.json
	target/debug/xtask test --every --built target/built-fleet.json

# The program for agents, a workspace of its own: what speaks the protocol is needed nowhere else.
.PHONY: test-mcp
test-mcp: setup-test built
	cargo fmt --manifest-path mcp/Cargo.toml --check
	cargo build $(linted) --bins --tests --manifest-path mcp/Cargo.toml $(messages) >target/built-mcp.json
	target/debug/xtask test --every --built target/built-mcp.json

# Every view over a store of COUNT generated recordings in three engines, and their answers against each other; results
# are in docs/results/fleet.md. Wants Java 17, installs DuckDB and PySpark into target/peers.
fleet-peers: setup-test
	cargo build --release --manifest-path fleet/Cargo.toml
	fleet/scripts/peers $(or $(COUNT),1000)

# Every view over a store of COUNT generated recordings, on this machine and in Ballista with two executors on the loopback
# interface: answers against each other, times, memory; executors and a scheduler that are killed in mid-query. Installs
# Ballista's own programs into target/ballista, which takes longer than building Lineup. Results are in
# docs/results/fleet.md.
.PHONY: fleet-cluster
fleet-cluster: setup-test
	cargo clippy --release --all-targets --manifest-path fleet/Cargo.toml --features cluster -- -D warnings
	fleet/scripts/cluster $(or $(COUNT),50)

# Stores at URLs, in servers of S3, Azure and WebDAV on this machine, two who add at a time. Not part of `make test-fleet`,
# which has a server of S3's protocol of its own: these are installed by pip and npm, into target/clouds.
.PHONY: fleet-clouds
fleet-clouds: setup-test
	cargo build --manifest-path fleet/Cargo.toml
	fleet/scripts/clouds fleet/target/debug/lineup-fleet

# Kernels of every machine, and everything that can go wrong with one: those of `make test-rest` that boot.
test-kernel: setup-kernels built
	target/debug/xtask test --every "lineup it kernel::"

# Debian's kernels under the emulators of other distributions, which are fetched; and a program of another machine under
# QEMU 10, which is built from Debian's sources, once for each version, into the user's cache.
.PHONY: test-emulators setup-emulators
test-emulators: setup-emulators built
	target/debug/xtask test --by-hand "lineup it record::emulators::" "lineup it kernel::other_emulators::"

# The workspace's own rules; needs no cross compilers and no emulators.
lint: rules
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy --manifest-path fuzz/Cargo.toml --bins -- -D warnings

# Those that need no compiled workspace.
.PHONY: rules
rules: setup-lint
	cargo fmt --all --check
	cargo xtask tidy
	for other in fuzz fleet mcp; do \
	  cargo metadata --locked --format-version 1 --manifest-path $$other/Cargo.toml >/dev/null || exit 1; done

# What the later steps of .ci/run compile, in their order.
.PHONY: builds-ahead
builds-ahead:
	$(fleet_build)
	cargo build $(linted) --bins --tests --manifest-path mcp/Cargo.toml
	scripts/fuzz-brief --build

# Every fuzz target for some seconds each; run `cargo fuzz run TARGET` by hand for longer.
fuzz-brief: setup-test built
	scripts/fuzz-brief

# The command with its completions, manual pages and documents, as an archive in target/dist.
dist:
	cargo xtask dist

# The same as a Debian package in target/debian.
deb: dist
	command -v cargo-deb || { echo "installing cargo-deb by cargo install"; cargo install --locked cargo-deb; }
	cargo deb --no-build --package lineup

# Both, installed in clean roots of Debian 12 and 13, and what a newcomer does first there; results are in docs/install.md.
packages: deb
	command -v debootstrap || apt-get install --yes debootstrap
	scripts/packages

# The commands of the user's guide, also those that take minutes, and the book in target/guide where mdBook is installed.
guide: setup-test built
	target/debug/xtask test --every "lineup it guide::"
	if command -v mdbook; then mdbook build docs/guide --dest-dir $(CURDIR)/target/guide; fi

# Lineup beside its peers, in one run.
bench: setup-bench
	cargo bench --workspace

# How often Lineup finds the public wins that WINS, a folder of your own, has builds of (docs/wins.md); with STUDY=SECONDS
# each is studied as well.
.PHONY: wins
wins:
	$(if $(LINEUP),,cargo build --release -p lineup)
	cargo xtask wins $(WINS) $(if $(LINEUP),--lineup $(LINEUP)) $(if $(STUDY),--study $(STUDY))

# Readers against writers of the runtime, for minutes.
torture: setup-test
	LINEUP_TORTURE_SECONDS=120 cargo test --release -p lineup-runtime --test imv_torture --test clock -- \
	  --nocapture --test-threads 1
	LINEUP_TORTURE_SECONDS=120 cargo test --release -p lineup-runtime --test it c_programs:: -- --nocapture --test-threads 1

# What threads do to each other, found beside busy loops on one, two and four CPUs, COUNT times each; takes an hour.
threads-under-load: setup-test
	scripts/threads-under-load $(or $(COUNT),10)

# The runtime under Miri and ThreadSanitizer; installs parts of nightly Rust. Takes minutes, and so is not in .ci/run.
sanitize: setup-test
	scripts/sanitize

# Whether a test notices when what verdicts and constraints rest on is changed. Takes hours; results are in docs/results/mutation.md.
mutants: setup-test
	scripts/mutants

# Dependences on an order, seeded into real projects: how many a certificate accepts. Fetches sources; results are in
# docs/results/certificates.md.
trust:
	cargo build --release -p lineup-check
	cargo build -p lineup-sources --example freedom
	LINEUP_CHECK=target/release/lineup-check FREEDOM=target/debug/examples/freedom scripts/trust

# Random legal layouts of real projects against their own tests; downloads their sources.
shuffle: setup-test
	cargo build --release -p lineup
	scripts/shuffle 20

# How often a program beside itself is called changed over 20 links of each; results are in docs/results/measuring.md.
links-alarms: setup-test
	cargo build --release -p lineup
	scripts/links-alarms 100 20

# The test suites of real programs, alone and recorded natively, and calls of some under both engines; results are in
# docs/results/suites.md. Downloads their sources and takes hours.
suites: setup-test
	cargo build --release -p lineup -p lineup-engine -p lineup-plugin
	SUITES=$(CURDIR)/target/suites scripts/suites
	SUITES=$(CURDIR)/target/suites scripts/engines

# Attaches to a Redis server under load, COUNT times.
attachments: setup-test
	cargo build --release -p lineup-engine
	cargo build --release -p lineup-study --example attachments
	[ -e target/suites/redis.built ] || SUITES=$(CURDIR)/target/suites scripts/suites redis
	SUITES=$(CURDIR)/target/suites scripts/attachments $(or $(COUNT),1000)

# Advice for the timer, wake-up and TCP paths of Debian's 6.1 and 6.12 kernels; downloads kernels and sources, takes long.
kernel-advice: setup-kernels
	studies/kernel-advice/study.sh

# A kernel's timer path from its sources to a patch: fetched, built, booted, recorded, and the same with the change.
kernel-study: setup-kernels
	studies/kernel-source/study.sh

# The timer path's functions in one row of a kernel's image: fetched, built, booted, recorded, and with emptied calls.
kernel-order: setup-kernels
	studies/timer-tail-kernel/order.sh

# What TCP over the loopback needs of three types, in three kernels that are built and booted: as they are, in the groups
# that later kernels have, and in groups made of what was recorded.
net-study: setup-kernels
	studies/net-stack-kernel/built.sh

# Lua, SQLite, Redis and CPython as linked, in Lineup's orders, after BOLT's own run and under GCC's profile-guided optimisation;
# takes hours. apt needs deb-src entries.
against-optimisers: setup-test
	scripts/against-optimisers lua
	scripts/against-optimisers sqlite
	scripts/against-optimisers redis
	scripts/against-optimisers cpython

setup-lint:
	@scripts/setup lint

# What placement is worth for programs whose time lies in where objects lie: the model's choice, and that of paired runs.
placement: setup-test
	studies/placement/table.sh

# The scheduler's clock and the timers' structure as they were before two patches, in a kernel for 32-bit Arm: built, booted,
# compared, and the same with what is proposed.
kernel-clocks: setup-kernels
	studies/sched-clock-kernel/built.sh

setup-demo:
	@scripts/setup demo

setup-test:
	@scripts/setup test

setup-bench:
	@scripts/setup bench

setup-emulators:
	@scripts/setup emulators

setup-kernels:
	@scripts/setup kernels
