#!/usr/bin/env python3
"""The Rust crate vita49 reads the packets of `millstream relay`: data and context, while packets of the radio are lost.

The crate (https://crates.io/crates/vita49) is a decoder of VITA 49.2 that nobody here wrote, and other than Debian 12's
tshark it reads the fields of context packets. The checks are those of `relay_tshark.py`. In addition it writes each packet
again, and the bytes are the same.

The decoder takes minutes to compile, so this runs only if MILLSTREAM_VITA49 names a folder for it, and cargo is there. It is
compiled once, from the versions in relay_vita49.lock.

Exit status: 0 agrees, 1 not, 77 skipped.
"""

import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import threading

import relay_tshark
from common import MILLSTREAM, ROOT, Radio, skip

MANIFEST = """[package]
name = "decoder"
version = "0.1.0"
edition = "2021"
[dependencies]
vita49 = "=2.0.0"
[workspace]
"""
# Reads packets, each behind its length; writes a line of JSON for each.
DECODER = r"""
use std::io::Read;
use vita49::prelude::*;
fn main() {
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input).unwrap();
    let mut rest = &input[..];
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[..4].try_into().unwrap()) as usize;
        let bytes = &rest[4..4 + length];
        rest = &rest[4 + length..];
        let packet = Vrt::try_from(bytes).unwrap();
        assert_eq!(packet.to_bytes().unwrap(), bytes, "written again");
        let header = packet.header();
        assert_eq!(usize::from(header.packet_size()) * 4, length);
        let class = packet.class_id().unwrap();
        let (seconds, fraction) = (packet.integer_timestamp().unwrap(), packet.fractional_timestamp().unwrap());
        print!(
            "{{\"type\": {}, \"count\": {}, \"stream\": {}, \"oui\": {}, \"class\": {}, \"tsi\": {}, \"tsf\": {}, \"picoseconds\": {}",
            if packet.payload().context().is_ok() { 4 } else { 1 }, header.packet_count(), packet.stream_id().unwrap(), class.oui(),
            class.packet_class_code(), header.tsi() as u8, header.tsf() as u8,
            u128::from(seconds) * 1_000_000_000_000 + u128::from(fraction),
        );
        if let Ok(context) = packet.payload().context() {
            let state = context.state_indicators().unwrap();
            print!(
                ", \"rate_hz\": {}, \"frequency_hz\": {}, \"bandwidth_hz\": {}, \"gain_db\": {}, \"loss_known\": {}, \"loss\": {}",
                context.sample_rate_sps().unwrap(), context.rf_ref_freq_hz().unwrap(), context.bandwidth_hz().unwrap(),
                context.gain().unwrap().stage_1_gain_db(), state >> 24 & 1, state >> 12 & 1,
            );
            assert_eq!((context.if_ref_freq_hz(), context.reference_point_id()), (Some(0.0), Some(&0x64)));
            assert_eq!(context.signal_data_payload_format(), Some(&0xA000_03CF_0000_0000));
        } else {
            let data: String = packet.signal_payload().unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
            print!(", \"data\": \"{data}\"");
        }
        println!("}}");
    }
}
"""

# What cargo says where there is no network, or none is to be used.
NO_NETWORK = ["could not connect", "failed to connect", "could not resolve host", "timeout", "timed out", "network failure",
              "network is unreachable", "offline mode"]


def decoder(folder):
    """The path of the decoder, compiled if that was not done."""
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / "Cargo.toml").write_text(MANIFEST)
    main = folder / "src/main.rs"
    if not main.exists() or main.read_text() != DECODER:
        main.write_text(DECODER)
    shutil.copy(pathlib.Path(ROOT, "peers/relay_vita49.lock"), folder / "Cargo.lock")
    where = ["--quiet", "--locked", "--manifest-path", folder / "Cargo.toml"]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(folder / "target")}
    # For another target than this machine the program would not run, and be elsewhere.
    environment.pop("CARGO_BUILD_TARGET", None)
    fetched = subprocess.run(["cargo", "fetch", *where], capture_output=True, text=True, check=False, env=environment)
    if fetched.returncode != 0:
        if any(words in fetched.stderr.lower() for words in NO_NETWORK):
            skip("cargo cannot get the crate vita49 without the network")
        sys.exit(f"cargo cannot get the crate vita49:\n{fetched.stderr}")
    if subprocess.run(["cargo", "build", *where], check=False, env=environment).returncode != 0:
        sys.exit("the decoder does not compile")
    return folder / "target/debug/decoder"


class Sink:
    """Takes the datagrams of a port that is free."""

    def __init__(self):
        self.datagrams = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.socket.settimeout(1)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.take)
        self.thread.start()

    def take(self):
        while True:
            try:
                self.datagrams.append(self.socket.recv(1 << 16))
            except TimeoutError:
                if self.ended.is_set():
                    return

    def end(self):
        self.ended.set()
        self.thread.join()
        self.socket.close()
        return self.datagrams


def main():
    """Relays, then decodes and judges."""
    if not os.environ.get("MILLSTREAM_VITA49"):
        skip("MILLSTREAM_VITA49 names no folder for a decoder, the crate vita49, which takes minutes to compile")
    if shutil.which("cargo") is None:
        skip("no cargo (https://rustup.rs)")
    program = decoder(pathlib.Path(os.environ["MILLSTREAM_VITA49"]).resolve())
    sink = Sink()
    port = sink.port
    relay_tshark.PORTS[:] = [port]
    try:
        rate, facts = relay_tshark.RATE_HZ, relay_tshark
        radio = Radio("--any-rate", "--rx-antenna", "ramp", "--rx-buffer-samples", str(8 * rate),
                      "--fault", "lose to_host data p=0.01 seed=5")
        with radio:
            command = [MILLSTREAM, "relay", "--json", "--args", f"addr={radio.addr}", "--rate", str(rate),
                       "--nsamps", str(facts.SAMPLES), "--freq", str(facts.FREQ_HZ), "--gain", str(facts.GAIN_DB),
                       "--stream-id", "7", "--interval", "0.5", "--to", f"127.0.0.1:{port}"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    finally:
        datagrams = sink.end()
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    packets = b"".join(struct.pack("<I", len(datagram)) + datagram for datagram in datagrams)
    decoded = subprocess.run([program], input=packets, capture_output=True, check=False)
    if decoded.returncode != 0:
        sys.exit(f"the crate vita49 does not read a packet:\n{decoded.stderr.decode()}")
    receiver = relay_tshark.Receiver()
    for line in decoded.stdout.splitlines():
        found = json.loads(line)
        if "data" in found:
            found["data"] = bytes.fromhex(found["data"])
        receiver.take(found)
    relay_tshark.judge(json.loads(done.stdout)["results"], {port: receiver})


if __name__ == "__main__":
    main()
