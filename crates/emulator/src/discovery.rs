//! Discovery and echo.

use crate::broadcast::Broadcasts;
use crate::counters::{Counters, EventCounter};
use crate::faults::DeviceFaults;
use crate::personality::Personality;
use crate::time::monotonic_ns;
use millstream_link::port::Port;
use millstream_wire::mpm::{DiscoveryRequest, MAX_REPLY_LEN, emit_reply};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The interval at which a waiting responder checks its stop flag.
const TICK: Duration = Duration::from_millis(50);

/// Answers searches for radios, on one port; [`Discovery::run`] is the body of its thread.
pub(crate) struct Discovery {
    pub port: Port,
    pub broadcasts: Broadcasts,
    pub personality: &'static Personality,
    pub serial: String,
    pub name: String,
    /// Further fields of the answer to a search, behind `fpga`.
    pub fields: &'static [(&'static str, &'static str)],
    /// The longest datagram of the network, bytes of UDP payload.
    pub datagram_bytes_max: usize,
    /// Whether a session holds the radio; updated by the RPC thread.
    pub claimed: Arc<AtomicBool>,
    pub counters: Arc<Counters>,
    /// The counter of failed polls of the port.
    pub receive_errors: fn(&Counters) -> &EventCounter,
    pub machine: Arc<DeviceFaults>,
}

impl Discovery {
    /// Answers until `stop` is set.
    pub fn run(mut self, stop: &AtomicBool) {
        let mut reply = [0; MAX_REPLY_LEN];
        let mut question = [0; MAX_REPLY_LEN];
        while !stop.load(Ordering::Relaxed) {
            self.port.tx.release();
            let Ok(count) = self.port.rx.recv_batch(TICK) else {
                // The interface may be gone, and may come back.
                (self.receive_errors)(&self.counters).inc();
                std::thread::sleep(TICK);
                continue;
            };
            if self.machine.is_silent(monotonic_ns()) {
                // Requests of this time are dropped, not answered later.
                self.broadcasts.each(&mut question, |_, _| {});
                continue;
            }
            self.answer_broadcasts(&mut question, &mut reply);
            for index in 0..count {
                let datagram = self.port.rx.datagram(index);
                let answer = match DiscoveryRequest::parse(datagram.payload) {
                    Ok(DiscoveryRequest::Discover) => {
                        self.counters.discovery_requests.inc();
                        self.describe(&mut reply)
                    }
                    Ok(DiscoveryRequest::Echo(echo)) if echo.len() > self.datagram_bytes_max => {
                        self.counters.discovery_oversized.inc();
                        continue;
                    }
                    Ok(DiscoveryRequest::Echo(echo)) => {
                        self.counters.discovery_echoes.inc();
                        echo
                    }
                    Err(_) => {
                        self.counters.discovery_malformed.inc();
                        continue;
                    }
                };
                if self.port.tx.send(answer, datagram.source).is_err() {
                    self.counters.discovery_send_errors.inc();
                }
            }
        }
    }

    /// Answers broadcast searches. Echo requires the address.
    fn answer_broadcasts(&mut self, question: &mut [u8], reply: &mut [u8]) {
        let mut askers = Vec::new();
        self.broadcasts.each(question, |datagram, source| {
            match DiscoveryRequest::parse(datagram) {
                Ok(DiscoveryRequest::Discover) => askers.push(source),
                _ => self.counters.discovery_malformed.inc(),
            }
        });
        for asker in askers {
            self.counters.discovery_requests.inc();
            let answer = self.describe(reply);
            if self.port.tx.send(answer, asker).is_err() {
                self.counters.discovery_send_errors.inc();
            }
        }
    }

    fn describe<'a>(&self, reply: &'a mut [u8]) -> &'a [u8] {
        let claimed = if self.claimed.load(Ordering::Relaxed) { "True" } else { "False" };
        let known = [
            ("type", self.personality.mpm_type),
            ("product", self.personality.product),
            ("serial", &self.serial),
            ("name", &self.name),
            ("fpga", "n/a"),
        ];
        let claimed = ("claimed", claimed);
        let fields: Vec<_> = known.iter().chain(self.fields).chain([&claimed]).copied().collect();
        let length = emit_reply(&fields, reply).expect("names are checked by the configuration");
        &reply[..length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_loop::tests::FailedPort;
    use millstream_link::open;
    use millstream_link::port::PortOptions;
    use std::net::{Ipv4Addr, SocketAddrV4};

    #[test]
    fn a_port_that_cannot_be_heard_is_counted_as_that_of_its_purpose() {
        let purposes: [fn(&Counters) -> &EventCounter; 2] =
            [|all| &all.discovery_receive_errors, |all| &all.echo_receive_errors];
        let expected = [[FailedPort::FAILURES, 0], [0, FailedPort::FAILURES]];
        for (receive_errors, expected) in purposes.into_iter().zip(expected) {
            let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
            let port = open("udp", any, &PortOptions::default()).unwrap();
            let (deaf, stop) = FailedPort::new();
            let counters = Arc::new(Counters::default());
            let discovery = Discovery {
                port: Port { rx: deaf, ..port },
                broadcasts: Broadcasts::none(),
                personality: crate::DeviceKind::default().personality(),
                serial: "DEAF".to_owned(),
                name: "deaf".to_owned(),
                fields: crate::UhdGeneration::V4_11.row().discovery,
                datagram_bytes_max: 1472,
                claimed: Arc::default(),
                counters: counters.clone(),
                receive_errors,
                machine: Arc::new(DeviceFaults::new(1e6, 1.0)),
            };
            discovery.run(&stop);
            let all = counters.snapshot();
            assert_eq!([all.discovery_receive_errors, all.echo_receive_errors], expected);
            assert_eq!(all.discovery_malformed, 1, "what came before");
        }
    }
}
