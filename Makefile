# Two commands do everything: `make demo` (the main job) and `make test`.
# Each installs the Debian packages that it needs when run as root, and otherwise says which are missing.
# What follows ## is what `make help` says of a target; .ci/run makes those that begin with CI, in this order.

CARGO ?= cargo
# Asked when a recipe needs it.
TARGET = $(shell scripts/target.sh)
COMMIT = $$(git rev-parse --short=12 HEAD 2>/dev/null)
SOAPY  = $(TARGET)/release/libmillstreamSupport.so
PREFIX ?= /usr/local
SOAPY_MODULES ?= $(PREFIX)/lib/SoapySDR/modules0.8

.PHONY: help demo build build-lab test lint sanitize fuzz test-peers soapy install-soapy c install-c seify package test-package test-arm64 arm64 python test-python test-page test-dpdk test-vfio test-guests test-zenoh test-gpu sanitize-soapy miri msrv semver crates-io crates fresh clean rust rust-program

# Prints the comment of each target.
help:
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 22

# Compiled for a short build (Cargo.toml: profile `first`).
demo: rust-program ## emulated radio > kernel UDP > 8-VSB receiver > demo.ts and demo.png
	@scripts/need.sh build
	@scripts/need.sh demo
	MILLSTREAM_COMMIT=$(COMMIT) $(CARGO) build --profile first -p millstream-cli
	$(TARGET)/first/millstream demo --force

build: rust-program ## the command millstream, in target/release
	@scripts/need.sh build
	MILLSTREAM_COMMIT=$(COMMIT) $(CARGO) build --release -p millstream-cli

build-lab: rust ## millstream-lab, too
	@scripts/need.sh build
	MILLSTREAM_COMMIT=$(COMMIT) $(CARGO) build --release -p millstream-cli -p millstream-lab-cli

test: rust ## CI: all tests of our own, with the loom models
	@scripts/need.sh test
	scripts/test.sh

lint: rust ## CI: rustfmt, clippy, rustdoc, tidy, declared programs, licences; a warning is an error
	@scripts/need.sh lint
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	scripts/tidy.py
	scripts/circles.py
	scripts/programs.py
	scripts/dependencies.sh
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps

sanitize: rust ## CI: rings and runtime under the address and the thread sanitizer
	@scripts/need.sh sanitize
	scripts/sanitize.sh

fuzz: rust ## CI: every fuzz target for FUZZ_SECONDS (10)
	@scripts/need.sh fuzz
	FUZZ_SECONDS=$(FUZZ_SECONDS) fuzz/run.sh

# MILLSTREAM_BUILT: MILLSTREAM and MILLSTREAM_SOAPY name what make test has built.
test-peers: $(if $(MILLSTREAM_BUILT),rust,build-lab) ## CI: UHD, GNU Radio, ffprobe and Linux itself against ours
	@scripts/need.sh test-peers
	@[ -z "$(MILLSTREAM_BUILT)" ] || [ -x "$(MILLSTREAM)" ] || { echo "MILLSTREAM names no program: $(MILLSTREAM)" >&2; exit 1; }
	@if pkg-config --exists SoapySDR; then soapy/build.sh $(if $(MILLSTREAM_BUILT),debug,release); fi
	peers/run-all.sh

soapy: rust ## the SoapySDR module
	@scripts/need.sh soapy
	soapy/build.sh release

install-soapy: ## installs it: PREFIX=/usr/local
	@[ -e "$(SOAPY)" ] || { echo "$(SOAPY) is missing: run make soapy" >&2; exit 1; }
	install -d $(DESTDIR)$(SOAPY_MODULES)
	install -m 755 $(SOAPY) $(DESTDIR)$(SOAPY_MODULES)/

c: rust ## the library for programs in C, capi/millstream.h
	@scripts/need.sh build
	$(CARGO) build --release -p millstream-c

install-c: ## installs it with its header: PREFIX=/usr/local
	@[ -e "$(TARGET)/release/libmillstream_c.so" ] || { echo "the library is missing: run make c" >&2; exit 1; }
	install -d $(DESTDIR)$(PREFIX)/lib $(DESTDIR)$(PREFIX)/include
	install -m 644 capi/millstream.h $(DESTDIR)$(PREFIX)/include/
	install -m 644 $(TARGET)/release/libmillstream_c.a $(DESTDIR)$(PREFIX)/lib/
	install -m 755 $(TARGET)/release/libmillstream_c.so $(DESTDIR)$(PREFIX)/lib/libmillstream_c.so.1
	ln -sf libmillstream_c.so.1 $(DESTDIR)$(PREFIX)/lib/libmillstream_c.so

# 77: FutureSDR's crates cannot be had here.
seify: rust ## the driver for seify, with flowgraphs of FutureSDR (10 minutes the first time)
	@scripts/need.sh build
	scripts/seify.sh || [ $$? -eq 77 ]

package: rust ## static programs, Debian packages, wheels, source, bills of materials and checksums, in target/dist
	@scripts/need.sh package
	scripts/package.sh

test-package: ## installs, tries and purges these packages in a Debian of its own (root)
	@scripts/need.sh test-package
	scripts/test-package.sh

test-arm64: rust ## tests of the portable crates, compiled for ARM64 and run under emulation
	@scripts/need.sh test-arm64
	scripts/test-arm64.sh

arm64: rust ## both commands for ARM64, static, in target/aarch64-unknown-linux-musl/release
	@scripts/need.sh arm64
	MILLSTREAM_COMMIT=$(COMMIT) scripts/static.sh aarch64-unknown-linux-musl

python: rust ## wheels of the Python package, for x86-64 and ARM64, each tried with the README's example
	@scripts/need.sh python
	scripts/python.sh wheel

test-python: rust ## tests of the Python package (make test runs them, too)
	@scripts/need.sh test-python
	scripts/python.sh test

test-page: rust ## tests of the dashboard's page in a browser (make test runs the quick ones, too)
	@scripts/need.sh test-page
	scripts/page.sh

test-dpdk: rust ## the link dpdk over ports in software, with and without huge pages
	@scripts/need.sh test-dpdk
	$(CARGO) test -p millstream-dpdk --features libdpdk
	$(CARGO) test -p millstream-link --features dpdk --lib --test dpdk
	$(CARGO) test -p millstream-net --features millstream-link/dpdk --test engine dpdk::
	$(CARGO) test -p millstream-link --features dpdk --test conformance -- dpdk_ huge:: --test-threads=1

test-vfio: rust ## the link dpdk on a card behind vfio-pci and an IOMMU, in a guest
	@scripts/need.sh test-vfio
	scripts/test-vfio.sh $(MODELS)

test-guests: build-lab ## isolation, priorities, placements, XDP and hardware threads in guests with other kernels
	@scripts/need.sh test-guests
	scripts/test-guests.sh $(KERNELS)

# 77: the Python package cannot be installed here.
test-zenoh: rust ## the block zenoh_sink, which no other target builds (15 minutes the first time)
	@scripts/need.sh test-zenoh
	$(CARGO) clippy -p millstream-publish -p millstream-cli --features millstream-cli/zenoh --all-targets -- -D warnings
	$(CARGO) test -p millstream-publish --features zenoh
	$(CARGO) build -p millstream-cli --features zenoh
	MILLSTREAM=$(TARGET)/debug/millstream peers/zenoh_publish.py || [ $$? -eq 77 ]

test-gpu: rust ## the crate gpu, which no other target builds, on what Vulkan and CUDA find (5 minutes the first time)
	@scripts/need.sh test-gpu
	scripts/test-gpu.sh

sanitize-soapy: rust ## the SoapySDR module under both, in the hands of a careless program (20 minutes the first time)
	@scripts/need.sh sanitize-soapy
	soapy/sanitize.sh

miri: rust ## rings, packet formats and parts of the runtime under Miri (nightly Rust)
	@scripts/need.sh miri
	scripts/miri.sh

# 77: that Rust is not installed, and nothing was checked.
msrv: rust ## program and workspace with the oldest Rust that each promises, where it is installed
	@scripts/need.sh build
	scripts/msrv.sh || [ $$? -eq 77 ]

# 77: there is no release to compare with yet.
semver: rust ## the library's interface against the last release, or BASELINE=COMMIT: no break that the version does not say
	@scripts/need.sh build
	scripts/semver.sh $(BASELINE) || [ $$? -eq 77 ]

crates-io: rust ## the packages for crates.io: complete, and each compiles by itself
	@scripts/need.sh build
	$(CARGO) publish --workspace --dry-run --locked

crates: rust ## lines and dependencies of the crates, as a table and docs/pictures/crates.svg
	@scripts/need.sh crates
	scripts/crates.py

fresh: ## make demo and make test in a Debian made by debootstrap, with nothing but Rust, make and git (root)
	@scripts/need.sh fresh
	scripts/fresh.sh

clean: ## removes what was built
	$(CARGO) clean
	rm -rf fuzz/target demo.ts demo.png

rust:
	@scripts/rust.sh

rust-program:
	@scripts/rust.sh program
