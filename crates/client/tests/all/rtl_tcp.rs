//! A client of the protocol of `rtl_tcp`, written here, and the server.

use std::f64::consts::TAU;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use millstream_client::{Radio, RtlOptions, RtlServer};

/// Far longer than any step takes, so that a failing test ends.
const PATIENCE: Duration = Duration::from_secs(20);

const RATE_HZ: u32 = 1_000_000;

fn server(keys: &str, options: RtlOptions) -> RtlServer {
    let radio = Radio::open(&keys.parse().unwrap()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    RtlServer::start(radio, listener, options).unwrap()
}

fn connect(server: &RtlServer) -> TcpStream {
    let mut client = TcpStream::connect(server.address()).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut header = [0; 12];
    client.read_exact(&mut header).unwrap();
    assert_eq!(header, *b"RTL0\0\0\0\x05\0\0\0\x1d");
    client
}

fn command(client: &mut TcpStream, code: u8, value: u32) {
    let [a, b, c, d] = value.to_be_bytes();
    client.write_all(&[code, a, b, c, d]).unwrap();
}

/// Reads samples and returns the power at a frequency, as a share of all power, and the mean
/// magnitude.
fn tone(client: &mut TcpStream, at_hz: f64) -> (f64, f64) {
    let mut bytes = vec![0; 2 * 8192];
    client.read_exact(&mut bytes).unwrap();
    let (mut re, mut im, mut power) = (0.0, 0.0, 0.0);
    for (n, pair) in bytes.chunks_exact(2).enumerate() {
        let [i, q] = [pair[0], pair[1]].map(|byte| f64::from(byte) - 128.0);
        let (sin, cos) = (-TAU * at_hz * n as f64 / f64::from(RATE_HZ)).sin_cos();
        re += i * cos - q * sin;
        im += i * sin + q * cos;
        power += i * i + q * q;
    }
    let count = (bytes.len() / 2) as f64;
    ((re * re + im * im) / (power * count).max(1e-9), (power / count).sqrt())
}

/// Reads until a condition holds.
fn until(server: &RtlServer, client: &mut TcpStream, at_hz: f64, holds: impl Fn(f64, f64) -> bool) {
    let begin = Instant::now();
    loop {
        let (share, level) = tone(client, at_hz);
        if holds(share, level) {
            return;
        }
        let counts = server.counts();
        let refusal = server.last_refusal();
        assert!(begin.elapsed() < PATIENCE, "{share} {level} {at_hz}: {counts:?} {refusal:?}");
    }
}

#[test]
fn a_tone_moves_when_a_client_tunes_and_grows_with_the_gain() {
    let folder = tempfile::tempdir().unwrap();
    let scene = folder.path().join("scene.toml");
    let text = "[[station]]\nkind = \"tone\"\nfrequency = 100.2e6\nlevel = -60.0\n";
    std::fs::write(&scene, text).unwrap();
    let keys = format!("radio=emulated,scene={}", scene.display());
    let mut server = server(&keys, RtlOptions::default());
    let mut client = connect(&server);
    command(&mut client, 0x02, RATE_HZ);
    command(&mut client, 0x01, 100_000_000);
    command(&mut client, 0x03, 1);
    command(&mut client, 0x04, 400);
    until(&server, &mut client, 200e3, |share, _| share > 0.9);
    let (_, before) = tone(&mut client, 200e3);
    command(&mut client, 0x04, 460);
    until(&server, &mut client, 200e3, |share, level| {
        share > 0.9 && (level / before - 1.995).abs() < 0.15
    });
    command(&mut client, 0x01, 100_300_000);
    until(&server, &mut client, -100e3, |share, _| share > 0.9);
    // A setting that only other hardware has.
    command(&mut client, 0x0E, 1);
    // Beyond the range of the radio.
    command(&mut client, 0x01, 1);
    let begin = Instant::now();
    while server.counts().refused == 0 || server.counts().ignored == 0 {
        assert!(begin.elapsed() < PATIENCE, "{:?}", server.counts());
        tone(&mut client, 0.0);
    }
    server.stop();
    let counts = server.counts();
    let refusal = server.last_refusal();
    assert_eq!((counts.commands, counts.refused, counts.ignored), (6, 1, 1), "{refusal:?}");
    server.ledger().unwrap().balance().unwrap();
}

#[test]
fn at_gain_0_a_client_sees_noise_and_no_lines() {
    let mut server = server("radio=emulated", RtlOptions::default());
    let mut client = connect(&server);
    command(&mut client, 0x02, RATE_HZ);
    command(&mut client, 0x01, 433_800_000);
    command(&mut client, 0x03, 1);
    command(&mut client, 0x04, 0);
    let begin = Instant::now();
    while server.counts().commands < 4 {
        assert!(begin.elapsed() < PATIENCE, "{:?}", server.counts());
        tone(&mut client, 0.0);
    }
    // What is on its way was sampled with the gain before.
    until(&server, &mut client, 120e3, |share, level| share < 0.01 && level < 1.0);
    for at_hz in (-10..10).map(|k| f64::from(k) * 50e3) {
        let (share, level) = tone(&mut client, at_hz);
        // A quarter of a squared step for I, and as much for Q; a bin has 1/8192 of it.
        assert!((0.6..1.0).contains(&level), "{level}");
        assert!(share < 0.01, "{share} at {at_hz} Hz");
    }
    server.stop();
}

#[test]
fn a_client_that_does_not_read_disturbs_nobody() {
    let mut server = server("radio=emulated", RtlOptions::default().with_clients_max(2));
    let mut reads = connect(&server);
    let sleeps = connect(&server);
    // A third one is closed at once.
    let mut third = TcpStream::connect(server.address()).unwrap();
    third.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut rest = Vec::new();
    third.read_to_end(&mut rest).unwrap();
    assert_eq!(rest.len(), 12);
    let begin = Instant::now();
    while server.counts().missed == 0 {
        assert!(begin.elapsed() < PATIENCE, "{:?}", server.counts());
        tone(&mut reads, 0.0);
    }
    drop(sleeps);
    while server.counts().connected > 1 {
        assert!(begin.elapsed() < PATIENCE, "{:?}", server.counts());
        tone(&mut reads, 0.0);
    }
    server.stop();
    assert!(server.take_error().is_none());
    let counts = server.counts();
    assert_eq!((counts.clients, counts.connected), (2, 0));
    server.ledger().unwrap().balance().unwrap();
}

#[test]
fn gaps_become_zeros_so_that_the_count_keeps_the_time() {
    let fault = "fault=lose to_host data skip=50 every=200 count=5";
    let keys = format!("radio=emulated,antenna=tone:1e5;0.5,{fault}");
    let mut server = server(&keys, RtlOptions::default());
    let mut client = connect(&server);
    command(&mut client, 0x02, RATE_HZ);
    let (begin, mut zeros) = (Instant::now(), 0u64);
    let lost = |server: &RtlServer| server.ledger().map_or(0, |ledger| ledger.lost_total());
    let mut bytes = vec![0; 65536];
    while zeros == 0 || lost(&server) == 0 || zeros < lost(&server) {
        assert!(begin.elapsed() < PATIENCE, "{zeros} {}", lost(&server));
        client.read_exact(&mut bytes).unwrap();
        zeros += bytes.chunks_exact(2).filter(|pair| **pair == [128, 128]).count() as u64;
    }
    server.stop();
    assert_eq!(zeros, lost(&server));
}
