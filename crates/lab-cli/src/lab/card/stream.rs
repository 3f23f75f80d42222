//! Streams between the emulated radio and a host over the card.

use super::process::CardProcess;
use super::rig::{CardSetup, wait};
use super::{CardResult, HOST, RADIO, facts, folder};
use crate::child_radio::ChildRadio;
use crate::output::Join;
use anyhow::{Context, ensure};
use millstream_cpu::proc::Stat;
use std::fs;
use std::net::{SocketAddrV4, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The setting for huge pages, and the number that a link or two need.
const PAGES: &str = "/proc/sys/vm/nr_hugepages";
const PAGES_WANTED: u32 = 160;

/// Receives all samples; each must have the sent value.
pub fn receive(rig: &CardSetup) -> CardResult {
    received(rig, "huge=off")
}

/// The same with huge pages.
pub fn receive_huge(rig: &CardSetup) -> CardResult {
    with_huge_pages(|| received(rig, "huge=on"))
}

/// Reserves huge pages, and releases them afterwards.
pub fn with_huge_pages(work: impl FnOnce() -> CardResult) -> CardResult {
    let before = fs::read_to_string(PAGES)?;
    fs::write(PAGES, PAGES_WANTED.to_string())?;
    let got = fs::read_to_string(PAGES)?;
    let outcome = work();
    fs::write(PAGES, before.trim())?;
    let mut lines = outcome.with_context(|| {
        format!("it failed with {} huge pages; {PAGES_WANTED} were asked for", got.trim())
    })?;
    lines.push(format!("{} huge pages; afterwards {}", got.trim(), before.trim()));
    Ok(lines)
}

/// Receives all samples over the link with these options.
pub fn received(rig: &CardSetup, more: &str) -> CardResult {
    let radio = rig.radio(&[])?;
    let file = recording();
    let process = start(rig, more, rig.samples as f64 / rig.rate_hz, &file)?;
    let mut lines = watched(&process, &file)?;
    let ended = process.end()?;
    let document = ended.document()?;
    let ledger = &document["results"]["ledger"];
    ensure!(ledger["expected"] == rig.samples, "the recording is too short: {ledger}");
    ensure!(ledger["delivered"] == rig.samples, "samples were lost: {ledger}");
    let checked = steps_of_ramp(&file)?;
    ensure!(
        checked == [rig.samples],
        "the received samples are not consecutive; the runs of consecutive samples are: \
         {checked:?}"
    );
    lines.splice(0..0, ended.described());
    lines.push(format!("{} samples expected, {} received", rig.samples, rig.samples));
    lines.push("each is the one that the radio sent (a ramp, compared)".to_owned());
    lines.push(format!("the radio: {}", counted(radio)?));
    Ok(lines)
}

/// Kills a host in the middle; it must leave nothing behind.
pub fn kill(rig: &CardSetup) -> CardResult {
    let _radio = rig.radio(&[])?;
    let file = recording();
    let process = start(rig, "huge=off", 60.0, &file)?;
    let mut lines = watched(&process, &file)?;
    lines.insert(0, format!("{} # killed", process.kill()?));
    let free = || facts::type1().contains(": 0 users");
    ensure!(
        wait(Duration::from_secs(5), free),
        "the process that was killed still holds: {}",
        facts::type1()
    );
    for place in ["/var/run/dpdk", "/run/dpdk", "/tmp/dpdk", "/root/dpdk"] {
        ensure!(!Path::new(place).exists(), "the process that was killed has left {place} behind");
    }
    lines.push(format!("{}; no folder of DPDK's is left", facts::type1()));
    Ok(lines)
}

/// Transmits the received samples; the radio records them.
pub fn transmit(rig: &CardSetup) -> CardResult {
    transmitted(rig, "huge=off")
}

/// The same over the link with these options.
pub fn transmitted(rig: &CardSetup, more: &str) -> CardResult {
    let (file, sent) = (recording(), folder().join("sent.sc16"));
    let _ = fs::remove_file(&sent);
    let radio = rig.radio(&["--tx-out", &sent.to_string_lossy()])?;
    let device = format!("addr={RADIO},link={}", rig.link(more));
    let (input, rate) = (file.to_string_lossy(), rig.rate_hz.to_string());
    let words = ["--json", "tx", "--args", &device, "--in", &input, "--rate", &rate];
    let ended = CardProcess::start(&words)?.end()?;
    let document = ended.document()?;
    let counters = counted(radio)?;
    let (wanted, got) = (fs::read(&file)?, fs::read(&sent)?);
    let ledger = &document["results"]["ledger"];
    let same = got.windows(wanted.len().max(1)).next() == Some(&wanted[..]);
    ensure!(same, "the radio has {} of {} transmitted bytes: {ledger}", got.len(), wanted.len());
    let mut lines = ended.described();
    lines.push(format!("ledger {ledger}"));
    lines.push(format!("the radio sent the {} bytes of the file", got.len()));
    lines.push(format!("the radio: {counters}"));
    Ok(lines)
}

/// Opens two queues, and a UDP port on each.
pub fn queues(rig: &CardSetup) -> CardResult {
    let link = rig.link("huge=off,queues=2");
    let host = ["host", "net", "host", "--duration", "15", "--link", &link];
    let ports = ["--echo-port", "7", "--echo-port", "9"];
    let process = CardProcess::start(&[&host[..], &ports].concat())?;
    let mut lines = Vec::new();
    for port in [7, 9] {
        let (sent, echoed) = echoes(SocketAddrV4::new(HOST, port), Duration::from_secs(8))?;
        lines.push(format!("UDP port {port}: {sent} datagrams, {echoed} came back"));
        ensure!(sent == echoed && sent > 0, "{}", lines.join("\n"));
    }
    let ended = process.end()?;
    ensure!(ended.status.success(), "{}", [lines, ended.described()].concat().join("\n"));
    Ok([ended.described(), ended.wrote(), lines].concat())
}

/// The number of datagrams sent after the first came back, and of those that came back.
fn echoes(to: SocketAddrV4, patience: Duration) -> anyhow::Result<(u32, u32)> {
    const COUNT: u32 = 100;
    let socket = UdpSocket::bind((RADIO, 0))?;
    socket.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut answer = [0; 64];
    let mut exchange = |number: u32| {
        // Until its neighbour is known a datagram may be refused.
        let _ = socket.send_to(&number.to_be_bytes(), to);
        wait(Duration::from_millis(500), || {
            socket.recv(&mut answer).is_ok() && answer.first_chunk() == Some(&number.to_be_bytes())
        })
    };
    let first = wait(patience, || exchange(0));
    ensure!(first, "the host at {to} returned no datagram");
    Ok((COUNT, (1..=COUNT).map(|number| u32::from(exchange(number))).sum()))
}

/// Starts a recording host.
pub fn start(
    rig: &CardSetup,
    more: &str,
    seconds: f64,
    file: &Path,
) -> anyhow::Result<CardProcess> {
    let _ = fs::remove_file(part(file));
    let device = format!("addr={RADIO},claim_wait_s=20,link={}", rig.imported_link(more));
    let (rate, count) = (rig.rate_hz.to_string(), (seconds * rig.rate_hz).round().to_string());
    let (config, out) = (rig.file(), file.to_string_lossy());
    let config = config.to_string_lossy();
    let mut words = vec!["--json", "--config", &config, "rx", "--args", &device, "--rate", &rate];
    words.extend(["--nsamps", &count, "--out", &out]);
    CardProcess::start(&words)
}

/// Waits until samples come, and returns the process's VFIO state then.
pub fn watched(process: &CardProcess, file: &Path) -> anyhow::Result<Vec<String>> {
    let part = part(file);
    let comes = || fs::metadata(&part).is_ok_and(|part| part.len() > 0);
    // A process that ended without any reports its reason at the wait.
    wait(Duration::from_secs(60), || {
        comes() || facts::held(process.pid()).is_empty() && gone(process)
    });
    let mut lines = vec![format!("it holds {}", facts::held(process.pid()).join(" "))];
    lines.push(facts::type1());
    lines.extend(facts::interrupts());
    Ok(lines)
}

fn gone(process: &CardProcess) -> bool {
    let stat = Stat::read(format!("/proc/{}", process.pid()).as_ref());
    stat.is_none_or(|stat| stat.field(3) == Some('Z'))
}

/// The non-zero counters of a radio.
pub fn counted(radio: ChildRadio) -> anyhow::Result<String> {
    let counters = radio.stop()?;
    let all = counters.as_object().context("the emulated radio printed no counters")?;
    let busy = all.iter().filter(|(_, count)| count.as_u64() > Some(0));
    Ok(busy.map(|(name, count)| format!("{name} {count}")).join(", "))
}

/// The lengths of the runs of consecutive samples: the radio's antenna is a counter.
fn steps_of_ramp(file: &Path) -> anyhow::Result<Vec<u64>> {
    let bytes = fs::read(file)?;
    let values =
        bytes.chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().expect("four bytes")));
    let (mut runs, mut last) = (Vec::new(), None);
    for value in values {
        match runs.last_mut() {
            Some(run) if last == Some(value.wrapping_sub(1)) => *run += 1,
            _ => runs.push(1),
        }
        last = Some(value);
    }
    Ok(runs)
}

/// The file of the samples.
pub fn recording() -> PathBuf {
    folder().join("card.sc16")
}

/// The partial file while samples come.
fn part(file: &Path) -> PathBuf {
    file.with_extension("sc16.part")
}
