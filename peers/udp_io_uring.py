#!/usr/bin/env python3
"""io_uring beside the system calls that the link `udp` uses: would a link over io_uring gain anything?

The program udp_io_uring.rs has the shortest code for both: multishot `recvmsg` with a ring of buffers beside `recvmmsg`, with
and without GRO, and sends in one submission, also without copies, beside `sendmmsg`, with and without GSO. Each pair of a
sender and a receiver exchanges datagrams over loopback in turn. The table shows the CPU time of a packet on both sides and
packets a second: median and range of the rounds.

It needs the crate io-uring, so it runs only if MILLSTREAM_IO_URING names a folder to compile it in, and cargo is there.

    sudo MILLSTREAM_IO_URING=/tmp/io-uring peers/udp_io_uring.py [--rounds N]

Exit status: 0 measured, 77 skipped.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

from common import CARGO, ROOT, skip

MANIFEST = """[package]
name = "uring"
version = "0.1.0"
edition = "2024"
[dependencies]
io-uring = "=0.7.16"
libc = "0.2"
[workspace]
"""


def main():
    """Compiles it once, then measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each pair")
    args = parser.parse_args()
    if not os.environ.get("MILLSTREAM_IO_URING"):
        skip("MILLSTREAM_IO_URING names no folder to compile udp_io_uring.rs in")
    if os.geteuid() != 0:
        skip("large socket buffers need root: run it with sudo")
    if not {0, 1} <= os.sched_getaffinity(0):
        skip("it needs CPUs 0 and 1")
    if shutil.which(CARGO) is None:
        skip("no cargo (https://rustup.rs)")
    disabled = pathlib.Path("/proc/sys/kernel/io_uring_disabled")
    if disabled.exists() and disabled.read_text(encoding="ascii").strip() != "0":
        skip("the kernel does not allow io_uring (kernel.io_uring_disabled)")
    folder = pathlib.Path(os.environ["MILLSTREAM_IO_URING"]).resolve()
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / "Cargo.toml").write_text(MANIFEST, encoding="ascii")
    shutil.copy(pathlib.Path(ROOT, "peers/udp_io_uring.rs"), folder / "src/main.rs")
    shutil.copy(pathlib.Path(ROOT, "peers/udp_io_uring.lock"), folder / "Cargo.lock")
    environment = {**os.environ, "CARGO_TARGET_DIR": str(folder / "target")}
    of = ["--quiet", "--locked", "--manifest-path", folder / "Cargo.toml"]
    if subprocess.run([CARGO, "fetch", *of], check=False, env=environment).returncode != 0:
        skip("cargo cannot get the crate io-uring without the network")
    subprocess.run([CARGO, "build", "--release", *of], check=True, env=environment)
    sys.exit(subprocess.run([folder / "target/release/uring", str(args.rounds)], check=False).returncode)


if __name__ == "__main__":
    main()
