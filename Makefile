# Two commands do everything: `make demo` (the main job) and `make test`.
# Each installs the Debian packages that it needs when run as root, and otherwise says which are missing.

CARGO ?= cargo
BIN   := target/release/millstream

.PHONY: help demo build test sanitize test-dpdk test-vfio test-peers fuzz lint clean rust

help:
	@echo "make demo        emulated radio > kernel UDP > 8-VSB receiver > demo.ts and demo.png"
	@echo "make test        all tests of our own, with loom models"
	@echo "make test-dpdk   the link dpdk over ports in software, with and without huge pages"
	@echo "make test-vfio   the link dpdk on a card behind vfio-pci and an IOMMU, in a guest"
	@echo "make test-peers  against programs that nobody here wrote: UHD, GNU Radio, ffprobe"
	@echo "make sanitize    rings and runtime under the address and the thread sanitizer"
	@echo "make fuzz        every fuzz target for FUZZ_SECONDS (10)"
	@echo "make lint        rustfmt, clippy, rustdoc and tidy; warnings are errors"

demo: build
	@scripts/need.sh --optional ffmpeg
	$(BIN) demo

build: rust
	@scripts/need.sh gcc libc6-dev
	$(CARGO) build --release -p millstream

test: rust
	@scripts/need.sh gcc libc6-dev
	@scripts/need.sh --optional ffmpeg iproute2 iputils-ping
	@scripts/need.sh --optional libdpdk-dev pkg-config
	scripts/test.sh

test-dpdk: rust
	@scripts/need.sh gcc libc6-dev libdpdk-dev pkg-config
	$(CARGO) test -p millstream-dpdk --features libdpdk
	$(CARGO) test -p millstream-link --features dpdk --lib --test dpdk
	$(CARGO) test -p millstream-net --features millstream-link/dpdk --test engine dpdk::
	$(CARGO) test -p millstream-link --features dpdk --test conformance -- dpdk_ huge:: --test-threads=1

test-vfio: rust
	@scripts/need.sh gcc libc6-dev
	@scripts/need.sh --optional libdpdk-dev dpdk pkg-config qemu-system-x86 xz-utils
	scripts/test-vfio.sh $(MODELS)

test-peers: build
	@scripts/need.sh --optional uhd-host libuhd-dev g++ python3-uhd gnuradio python3-numpy ffmpeg iproute2 util-linux tshark strace \
	  iputils-ping iputils-arping netcat-openbsd tcpdump rt-tests sockperf \
	  python3-gevent python3-msgpack python3-pyroute2 python3-pyudev python3-netaddr python3-six python3-systemd
	peers/run-all.sh

sanitize: rust
	@scripts/need.sh gcc libc6-dev
	scripts/sanitize.sh

fuzz: rust
	@scripts/need.sh g++ libc6-dev
	fuzz/run.sh $(or $(FUZZ_SECONDS),10)

lint: rust
	@scripts/need.sh gcc libc6-dev python3
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	scripts/tidy.py
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps

clean:
	$(CARGO) clean
	rm -rf fuzz/target demo.ts demo.png

rust:
	@command -v $(CARGO) >/dev/null || { echo "Rust is missing: install 1.89 or newer from https://rustup.rs" >&2; exit 1; }
