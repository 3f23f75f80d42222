//! `millstream sim radio`: its refusals, its counts, and its end.

use crate::common::{Outcome, Radio, Running, address, command, millstream, names};
use std::io::Write;
use std::net::{TcpStream, UdpSocket};
use std::path::Path;

#[test]
fn what_cannot_be_served_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("no.ts"), "this is no transport stream").unwrap();
    let addr = address().to_string();
    for (args, part) in [
        (&["--rx-antenna", "flute"][..], "`flute` is no antenna; give one of tone, noise, ramp"),
        (&["--rx-antenna", "file:none.sc16"], "none.sc16: No such file"),
        (&["--rx-antenna", "atsc:no.ts"], "not a transport stream: byte 0 is 0x74"),
        (&["--rx-antenna", "ramp", "--rx-antenna", "ramp", "--rx-antenna", "ramp"], "per channel"),
        (&["--link", "none"], "this program has: udp"),
        (&["--serial", "a;b"], "1 to 32 of"),
        (&["--rx-antenna", "loopback:7"], "`channel=7` wants a channel from 0 to 3"),
        (&["--tx-out", "none/x.sc16"], "cannot write the transmit file none/x.sc16: No such file"),
        (&["--tx-buffer-samples", "1"], "tx_buffer_samples is 1: give 4096 samples to 2^26"),
        (&["--time-scale", "1e9"], "a factor from 0.000001 to 1000000"),
    ] {
        let args = [&["sim", "radio", "--addr", &addr], args].concat();
        millstream(folder.path(), &args).fails(1, part);
    }
    let outcome = millstream(folder.path(), &["sim", "radio", "--addr", "192.0.2.1"]);
    outcome.fails(1, "the address is not on this machine: choose one that `ip -4 addr` lists");
}

#[test]
fn a_second_radio_on_an_address_is_told_that_somebody_has_it() {
    let radio = Radio::start(Path::new("/"), &[]);
    let addr = radio.addr.to_string();
    let outcome =
        millstream(Path::new("/"), &["sim", "radio", "--addr", &addr, "--chdr-port", "0"]);
    outcome.fails(1, &format!("cannot open UDP port {addr}:49600: Address already in use"));
    outcome.fails(1, "holds it; stop it, or choose another address");
    assert_eq!(outcome.stderr.matches("Address already in use").count(), 1, "{outcome:?}");
    radio.stop();
}

#[test]
fn every_signal_that_asks_ends_it_in_order() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let radio =
            Radio::start(Path::new("/"), &["--rx-antenna", "ramp", "--rx-antenna", "noise"]);
        radio.running.signal(signal);
        let document = radio.running.wait().succeeds().json();
        assert_eq!(document["results"]["counters"]["rx_packets"], 0);
    }
}

#[test]
fn what_a_server_says_first_and_last_is_on_one_stream() {
    let radio = Radio::start(Path::new("/"), &[]);
    let (addr, args) = (address().to_string(), radio.args());
    for server in [
        &["sim", "radio", "--chdr-port", "0", "--addr", &addr][..],
        &["serve", "rtl-tcp", "--args", &args, "--listen", "127.0.0.1:0"],
        &["relay", "--args", &args, "--rate", "1e6", "--to", "127.0.0.1:9"],
    ] {
        let running = Running::start(command(Path::new("/"), server));
        running.line("ready: ");
        running.signal(libc::SIGTERM);
        let outcome = running.wait();
        assert_eq!(outcome.stdout, "", "{server:?}");
        let last = outcome.stderr.lines().last().unwrap_or_default();
        assert!(!last.starts_with("ready: "), "{server:?}: {}", outcome.stderr);
    }
    radio.stop();
}

#[test]
fn several_radios_have_addresses_serials_files_and_counters_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let radio = Radio::start(folder.path(), &["--radios", "2", "--tx-out", "sent.sc16"]);
    let second = std::net::Ipv4Addr::from(u32::from(radio.addr) + 1).to_string();
    let found = millstream(folder.path(), &["find", "--addr", &second]);
    let serial = (u32::from(radio.addr) + 1) & 0x7fff_ffff;
    assert!(found.succeeds().stdout.contains(&format!("serial {serial:08X},")), "{found:?}");
    radio.running.signal(libc::SIGTERM);
    let document = radio.running.wait().succeeds().json();
    let radios = document["results"]["radios"].as_array().unwrap();
    let asked = |index: usize| &radios[index]["counters"]["discovery_requests"];
    assert_eq!(radios[1]["addr"], second);
    assert_eq!(document["results"]["counters"]["discovery_requests"], *asked(1));
    assert!(asked(1).as_u64() > Some(0) && *asked(0) == 0);
    for name in ["sent-0.sc16", "sent-1.sc16", "sent-0.sigmf-meta", "sent-1.sigmf-meta"] {
        assert!(folder.path().join(name).exists(), "{name}");
    }
}

/// Bytes without a pattern, the same every time.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    (0..bytes).map(|_| next()).collect()
}

#[test]
fn hostile_bytes_on_every_port_are_counted_and_cost_no_sample() {
    let folder = tempfile::tempdir().unwrap();
    let radio = Radio::start(folder.path(), &["--rx-antenna", "ramp", "--time-scale", "0.5"]);
    let args = radio.args();
    let rx = ["rx", "--json", "--args", &args, "--rate", "1e6", "--nsamps", "500000"];
    let rx = Running::start(command(folder.path(), &[&rx[..], &["--out", "x.sc16"]].concat()));
    crate::common::growing(&folder.path().join("x.sc16.part"));
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    for port in [millstream_wire::mpm::DISCOVERY_PORT, radio.chdr_port] {
        for bytes in [0, 1, 7, 8, 16, 64, 1472, 8000] {
            socket.send_to(&noise(bytes), (radio.addr, port)).unwrap();
            socket.send_to(&vec![0xff; bytes], (radio.addr, port)).unwrap();
        }
    }
    for bytes in [1, 100, 100_000] {
        let mut stream = TcpStream::connect((radio.addr, millstream_wire::mpm::RPC_PORT)).unwrap();
        // The radio may close the connection before it has read everything.
        let _ = stream.write_all(&vec![0xc1; bytes]);
    }
    let ledger = rx.wait().succeeds().json()["results"]["ledger"].take();
    assert_eq!((&ledger["delivered"], &ledger["balances"]), (&500_000.into(), &true.into()));
    let counters = radio.stop();
    for name in ["discovery_malformed", "chdr_malformed", "rpc_malformed"] {
        assert!(counters[name].as_u64() > Some(0), "{name}: {counters}");
    }
}

/// Transmits ten thousand samples to a radio started with these options; returns the end of the
/// radio.
fn transmit_to(
    folder: &Path,
    mut radio: std::process::Command,
    addr: &str,
    ready: impl FnOnce(u32),
) -> Outcome {
    std::fs::write(folder.join("x.sc16"), vec![7; 40_000]).unwrap();
    let running = Running::start({
        radio.args(["--tx-buffer-samples", "65536", "--chdr-port", "0", "--addr", addr]);
        radio
    });
    running.line("ready");
    ready(running.pid());
    let args = format!("addr={addr}");
    let tx = ["tx", "--args", &args, "--in", "x.sc16", "--rate", "1e6", "--max-underflows", "1000"];
    millstream(folder, &tx).succeeds();
    running.signal(libc::SIGTERM);
    running.wait()
}

#[test]
fn a_transmit_file_that_cannot_be_written_is_a_failure_and_keeps_its_part() {
    let folder = tempfile::tempdir().unwrap();
    let radio = command(folder.path(), &["sim", "radio", "--json", "--tx-out", "/dev/full"]);
    let outcome = transmit_to(folder.path(), radio, &address().to_string(), |_| ());
    outcome.fails(1, "cannot write the transmit file /dev/full: No space left on device");
    assert!(outcome.stderr.lines().count() > 2, "said when it happens, too: {outcome:?}");
    let document = outcome.json();
    let radio = &document["results"]["radios"][0];
    let lost = radio["counters"]["tx_out_lost_samples"].as_u64();
    assert!(lost > Some(0) && radio["troubles"].as_array().unwrap().len() == 2, "{document}");

    // A limit of the file size imitates a full disk. It is set once the radio has its memory, which
    // the kernel treats as files.
    let mut radio = command(folder.path(), &["sim", "radio", "--tx-out", "sent.sc16"]);
    let ignore = || {
        // SAFETY: a plain system call.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        Ok(())
    };
    // SAFETY: the closure runs between fork and exec, and makes an async-signal-safe call only.
    unsafe { std::os::unix::process::CommandExt::pre_exec(&mut radio, ignore) };
    let limit = |pid: u32| {
        let limit = libc::rlimit { rlim_cur: 20_000, rlim_max: 20_000 };
        // SAFETY: a plain system call, which reads `limit`.
        let done = unsafe {
            libc::prlimit(pid as i32, libc::RLIMIT_FSIZE, &raw const limit, std::ptr::null_mut())
        };
        assert_eq!(done, 0);
    };
    let outcome = transmit_to(folder.path(), radio, &address().to_string(), limit);
    outcome.fails(1, "cannot write the transmit file sent.sc16: File too large");
    outcome.fails(1, "what could be written is in sent.sc16.part");
    assert_eq!(names(folder.path()), ["sent.sc16.part", "x.sc16"]);
}

/// A rate tried here must not fail, or be another one, on hardware.
#[test]
fn a_rate_that_an_e320_does_not_have_is_refused_with_the_nearest_or_any_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let record = |options: &[&str]| {
        let radio = Radio::start(folder.path(), options);
        let args = radio.args();
        let rx = ["rx", "--json", "--args", &args, "--rate", "100e3", "--nsamps", "1000"];
        let outcome =
            millstream(folder.path(), &[&rx[..], &["--out", "x.sc16", "--force"]].concat());
        radio.running.signal(libc::SIGTERM);
        let radio = radio.running.wait();
        (outcome, radio.succeeds().json()["results"]["radios"][0].take())
    };
    let (outcome, radio) = record(&[]);
    outcome.fails(
        1,
        "no sample rate of 100000 Hz: the nearest at its clock of 220000 Hz is 220000 Hz",
    );
    assert_eq!(radio["counters"]["rate_coercions"], 1, "{radio}");
    let trouble = radio["troubles"][0].as_str().unwrap();
    assert!(trouble.contains("give --any-rate to allow any rate"), "{trouble}");
    let (outcome, radio) = record(&["--any-rate"]);
    let rate_hz = outcome.succeeds().json()["results"]["rate_hz"].as_f64();
    assert_eq!((rate_hz, &radio["troubles"]), (Some(100e3), &serde_json::json!([])));
}
