//! A Linux bridge between the two sides, in a network of its own.

use std::time::{Duration, Instant};

use super::network::{self, FIRST, ip};
use super::process::SideProcess;
use super::{StageError, StartSide};

/// The bridge, and its ports towards the active and the passive side.
const BRIDGE: &str = "ms-bridge";
const PORTS: [&str; 2] = ["ms-br-a", "ms-br-b"];

/// Time limit for the ports to forward.
const PATIENCE: Duration = Duration::from_secs(10);

/// A bridge; it and its network end with their process.
pub(super) struct Bridge {
    process: SideProcess,
}

impl Bridge {
    /// Makes a bridge between the networks of two processes, each of which gets an interface as
    /// [`network::join`] gives it.
    pub fn between(
        pids: [u32; 2],
        mtu: usize,
        start: StartSide,
        ended: fn() -> bool,
    ) -> Result<Self, StageError> {
        let mut process = SideProcess::spawn("bridge", start, Some("new"), None, ended)?;
        process.hello()?;
        let own = process.pid();
        // Without multicast snooping the bridge sends nothing itself.
        ip(own, &format!("link add {BRIDGE} type bridge mcast_snooping 0")).map_err(advise)?;
        for (index, pid) in pids.into_iter().enumerate() {
            let port = PORTS[index];
            let far = format!("{port} mtu {mtu} numtxqueues 1 numrxqueues 1 netns {own}");
            network::add_pair(&FIRST, index, pid, mtu, &far)?;
            ip(own, &format!("link set {port} master {BRIDGE}"))?;
            ip(own, &format!("link set {port} up"))?;
        }
        ip(own, &format!("link set {BRIDGE} mtu {mtu}"))?;
        ip(own, &format!("link set {BRIDGE} up"))?;
        for (index, pid) in pids.into_iter().enumerate() {
            network::raise(&FIRST, index, pid)?;
        }
        network::introduce(&FIRST, pids)?;
        let bridge = Self { process };
        bridge.wait()?;
        Ok(bridge)
    }

    /// Waits until both ports forward: the bridge drops what comes earlier.
    fn wait(&self) -> Result<(), StageError> {
        let since = Instant::now();
        loop {
            let ports = ip(self.process.pid(), &format!("-d -o link show master {BRIDGE}"))?;
            if ports.matches("state forwarding").count() == PORTS.len() {
                return Ok(());
            }
            if since.elapsed() > PATIENCE {
                return Err(StageError::Network(format!(
                    "the ports of the bridge do not forward after {} s: {ports}",
                    PATIENCE.as_secs()
                )));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns the frames that came to the bridge from both sides.
    pub fn frames(&self) -> Result<u64, StageError> {
        let path = format!("/proc/{}/net/dev", self.process.pid());
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|error| StageError::Network(format!("{path}: {error}")))?;
        Ok(received(&text))
    }
}

/// Adds the remedy to the error of a kernel without bridges.
fn advise(error: StageError) -> StageError {
    match error {
        StageError::Network(why) => StageError::Network(format!(
            "{why}; does this kernel have bridges? `sudo modprobe bridge` loads them. Without \
             --bridge a veth pair joins both sides"
        )),
        other => other,
    }
}

/// The frames that the bridge's ports received, of the text of /proc/PID/net/dev.
fn received(text: &str) -> u64 {
    let of_port = |line: &str| {
        let (name, counts) = line.split_once(':')?;
        // Bytes, then packets.
        let packets = counts.split_whitespace().nth(1)?.parse::<u64>().ok()?;
        PORTS.contains(&name.trim()).then_some(packets)
    };
    text.lines().filter_map(of_port).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_came_to_the_ports_counts() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets errs|bytes packets\n    \
                    lo: 9 9 0 9 9\nms-bridge: 7 7 0 1 1\nms-br-a:  640      10 0 1 3\n\
                    ms-br-b: 128 2 0 5 5\n";
        assert_eq!(received(text), 12);
        assert_eq!(received("no table"), 0);
    }
}
