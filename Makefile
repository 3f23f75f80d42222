# Two commands do everything: `make demo` (the main job) and `make test`.
# Each installs the Debian packages that it needs when run as root, and otherwise says which are missing.

CARGO ?= cargo
# Asked when a recipe needs it.
TARGET = $(shell scripts/target.sh)
COMMIT = $$(git rev-parse --short=12 HEAD 2>/dev/null)
SOAPY  = $(TARGET)/release/libmillstreamSupport.so
PREFIX ?= /usr/local
SOAPY_MODULES ?= $(PREFIX)/lib/SoapySDR/modules0.8

.PHONY: help demo build build-lab arm64 test-arm64 package test-package soapy install-soapy test python test-python test-page sanitize sanitize-soapy msrv crates-io semver miri test-dpdk test-vfio test-guests test-zenoh test-gpu test-peers fuzz lint fresh crates clean rust rust-program

help:
	@echo "make demo        emulated radio > kernel UDP > 8-VSB receiver > demo.ts and demo.png"
	@echo "make test        all tests of our own, with loom models"
	@echo "make package     static programs, Debian packages, wheels, source, bills of materials and checksums, in target/dist"
	@echo "make test-package  installs, tries and purges these packages in a Debian of its own, for x86-64 and ARM64 (root)"
	@echo "make test-arm64  tests of the portable crates, compiled for ARM64 and run under emulation"
	@echo "make build       the command millstream, in target/release; make build-lab: millstream-lab, too"
	@echo "make arm64       both commands for ARM64, static, in target/aarch64-unknown-linux-musl/release"
	@echo "make python      wheels of the Python package, for x86-64 and ARM64, in target/wheels"
	@echo "make test-python tests of the Python package (make test runs them, too)"
	@echo "make test-page   tests of the dashboard's page in a browser (make test runs the quick ones, too)"
	@echo "make test-dpdk   the link dpdk over ports in software, with and without huge pages"
	@echo "make test-vfio   the link dpdk on a card behind vfio-pci and an IOMMU, in a guest"
	@echo "make test-guests isolation, priorities, placements, XDP and hardware threads in guests with other kernels"
	@echo "make test-zenoh  the block zenoh_sink, which no other target builds: lints, tests, and Zenoh's Python package"
	@echo "make test-gpu    the crate gpu, which no other target builds: lints, and kernels on what Vulkan and CUDA find"
	@echo "make test-peers  against programs that nobody here wrote: UHD, GNU Radio, ffprobe"
	@echo "make soapy       the SoapySDR module; make install-soapy PREFIX=/usr/local installs it"
	@echo "make sanitize    rings and runtime under the address and the thread sanitizer"
	@echo "make sanitize-soapy  the same for the SoapySDR module, in the hands of a careless program"
	@echo "make fuzz        every fuzz target for FUZZ_SECONDS (10)"
	@echo "make miri        rings, packet formats and parts of the runtime under Miri (nightly Rust)"
	@echo "make lint        rustfmt, clippy, rustdoc, tidy, declared programs, licences; warnings are errors"
	@echo "make msrv        program and workspace with the oldest Rust that each promises, where it is installed"
	@echo "make semver      the library's interface against the last release, or BASELINE=COMMIT: no break that the version does not say"
	@echo "make crates-io   the packages for crates.io: complete, and each compiles by itself"
	@echo "make crates      lines and dependencies of the crates, as a table and docs/pictures/crates.svg"
	@echo "make fresh       make demo and make test in a Debian made by debootstrap (root)"

# Compiled for a short build (Cargo.toml: profile `first`).
demo: rust-program
	@scripts/need.sh build
	@scripts/need.sh demo
	MILLSTREAM_COMMIT=$(COMMIT) $(CARGO) build --profile first -p millstream-cli
	$(TARGET)/first/millstream demo --force

build: rust-program
	@scripts/need.sh build
	MILLSTREAM_COMMIT=$(COMMIT) $(CARGO) build --release -p millstream-cli

build-lab: rust
	@scripts/need.sh build
	MILLSTREAM_COMMIT=$(COMMIT) $(CARGO) build --release -p millstream-cli -p millstream-lab-cli

soapy: rust
	@scripts/need.sh soapy
	soapy/build.sh release

install-soapy:
	@[ -e "$(SOAPY)" ] || { echo "$(SOAPY) is missing: run make soapy" >&2; exit 1; }
	install -d $(DESTDIR)$(SOAPY_MODULES)
	install -m 755 $(SOAPY) $(DESTDIR)$(SOAPY_MODULES)/

test: rust
	@scripts/need.sh test
	scripts/test.sh

package: rust
	@scripts/need.sh package
	scripts/package.sh

test-package:
	@scripts/need.sh test-package
	scripts/test-package.sh

test-arm64: rust
	@scripts/need.sh test-arm64
	scripts/test-arm64.sh

arm64: rust
	@scripts/need.sh arm64
	MILLSTREAM_COMMIT=$(COMMIT) scripts/static.sh aarch64-unknown-linux-musl

python: rust
	@scripts/need.sh python
	scripts/python.sh wheel

test-python: rust
	@scripts/need.sh test-python
	scripts/python.sh test

test-page: rust
	@scripts/need.sh test-page
	scripts/page.sh

test-dpdk: rust
	@scripts/need.sh test-dpdk
	$(CARGO) test -p millstream-dpdk --features libdpdk
	$(CARGO) test -p millstream-link --features dpdk --lib --test dpdk
	$(CARGO) test -p millstream-net --features millstream-link/dpdk --test engine dpdk::
	$(CARGO) test -p millstream-link --features dpdk --test conformance -- dpdk_ huge:: --test-threads=1

test-vfio: rust
	@scripts/need.sh test-vfio
	scripts/test-vfio.sh $(MODELS)

test-guests: build-lab
	@scripts/need.sh test-guests
	scripts/test-guests.sh $(KERNELS)

# 77: the Python package cannot be installed here.
test-zenoh: rust
	@scripts/need.sh test-zenoh
	$(CARGO) clippy -p millstream-publish -p millstream-cli --features millstream-cli/zenoh --all-targets -- -D warnings
	$(CARGO) test -p millstream-publish --features zenoh
	$(CARGO) build -p millstream-cli --features zenoh
	MILLSTREAM=$(TARGET)/debug/millstream peers/zenoh_publish.py || [ $$? -eq 77 ]

test-gpu: rust
	@scripts/need.sh test-gpu
	scripts/test-gpu.sh

# MILLSTREAM_BUILT: MILLSTREAM and MILLSTREAM_SOAPY name what make test has built.
test-peers: $(if $(MILLSTREAM_BUILT),rust,build-lab)
	@scripts/need.sh test-peers
	@[ -z "$(MILLSTREAM_BUILT)" ] || [ -x "$(MILLSTREAM)" ] || { echo "MILLSTREAM names no program: $(MILLSTREAM)" >&2; exit 1; }
	@if pkg-config --exists SoapySDR; then soapy/build.sh $(if $(MILLSTREAM_BUILT),debug,release); fi
	peers/run-all.sh

sanitize: rust
	@scripts/need.sh sanitize
	scripts/sanitize.sh

sanitize-soapy: rust
	@scripts/need.sh sanitize-soapy
	soapy/sanitize.sh

miri: rust
	@scripts/need.sh miri
	scripts/miri.sh

fuzz: rust
	@scripts/need.sh fuzz
	FUZZ_SECONDS=$(FUZZ_SECONDS) fuzz/run.sh

lint: rust
	@scripts/need.sh lint
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	scripts/tidy.py
	scripts/circles.py
	scripts/programs.py
	scripts/dependencies.sh
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps

# 77: that Rust is not installed, and nothing was checked.
msrv: rust
	@scripts/need.sh build
	scripts/msrv.sh || [ $$? -eq 77 ]

# 77: there is no release to compare with yet.
semver: rust
	@scripts/need.sh build
	scripts/semver.sh $(BASELINE) || [ $$? -eq 77 ]

crates-io: rust
	@scripts/need.sh build
	$(CARGO) publish --workspace --dry-run --locked

crates: rust
	@scripts/need.sh crates
	scripts/crates.py

fresh:
	@scripts/need.sh fresh
	scripts/fresh.sh

clean:
	$(CARGO) clean
	rm -rf fuzz/target demo.ts demo.png

rust:
	@scripts/rust.sh

rust-program:
	@scripts/rust.sh program
