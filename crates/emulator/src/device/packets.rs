//! The packets received by the CHDR port, by packet type.

use super::fabric::Forwarded;
use super::out_stream::StatusTaken;
use super::requests::Waiting;
use super::{EmulatedDevice, HostAddress};
use millstream_wire::chdr::{Packet, PacketType};
use millstream_wire::mgmt::MgmtRepr;
use millstream_wire::stream::{CommandRepr, StatusRepr};

impl EmulatedDevice {
    /// Accepts a datagram that arrived at `now_ns`. Any content costs at most one count.
    pub fn receive(&mut self, datagram: &[u8], source: HostAddress, now_ns: u64) {
        self.counters().chdr_datagrams.inc();
        let Ok(packet) = Packet::parse(datagram, self.image.width) else {
            return self.counters().chdr_malformed.inc();
        };
        if packet.kind() != PacketType::Management && self.fabric.is_stopped(source.link) {
            return self.counters().chdr_unroutable.inc();
        }
        let now = self.keeper.clock().tick_at(now_ns);
        match packet.kind() {
            PacketType::Management => self.accept_management(&packet, source),
            PacketType::Control => self.accept_control(&packet, now),
            PacketType::StreamStatus => self.accept_status(&packet),
            PacketType::StreamCommand => self.accept_command(&packet, now),
            PacketType::Data | PacketType::TimedData => self.accept_data(&packet, now),
        }
    }

    fn accept_management(&mut self, packet: &Packet<'_>, source: HostAddress) {
        let Ok(request) = MgmtRepr::parse(packet) else {
            return self.counters().management_malformed.inc();
        };
        match self.fabric.forward(request, source) {
            Err(_) => self.counters().management_malformed.inc(),
            Ok(Forwarded::Endpoint(index, packet)) => {
                if self.endpoints[index].has_control() && !self.waiting.is_empty() {
                    self.wait(Waiting::Management(Box::new(packet)));
                } else {
                    self.manage(index, packet);
                }
            }
            Ok(forwarded) => self.send_management(forwarded),
        }
    }

    /// Executes a management packet at an endpoint.
    pub(super) fn manage(&mut self, index: usize, packet: MgmtRepr) {
        let endpoint = &mut self.endpoints[index];
        let waiting = endpoint.fifo.samples();
        let effect = self.fabric.execute(packet, endpoint);
        let dropped = waiting - endpoint.fifo.samples();
        if index < self.image.channels {
            self.note_dropped(index, dropped);
        }
        let Ok(effect) = effect else {
            return self.counters().management_malformed.inc();
        };
        if let Some(command) = effect.command {
            self.begin_stream(index, &command);
        }
        self.send_management(effect.forwarded);
    }

    fn send_management(&mut self, forwarded: Forwarded) {
        match forwarded {
            Forwarded::Host(mut reply, to) => {
                reply.version = self.image.generation.protocol.version();
                self.counters().management_packets.inc();
                self.outbox.send(to, |width, buffer| reply.emit(width, buffer));
            }
            Forwarded::Nowhere | Forwarded::Endpoint(..) => {
                self.counters().management_unanswered.inc();
            }
        }
    }

    /// Begins the stream of an endpoint with the command for its host.
    fn begin_stream(&mut self, index: usize, command: &CommandRepr) {
        if self.local_of(index).is_some() {
            self.endpoints[index].out.connect();
        }
        // The stream begins soon, so the antenna can prepare.
        if let Some(sender) = self.senders.get_mut(index) {
            sender.prepare(self.keeper.clock().rate_hz());
        }
        if self.endpoints[index].out.is_local() {
            return;
        }
        if let Some(to) = self.host(command.dst_epid) {
            self.outbox.send(to, |width, buffer| command.emit(width, buffer));
        }
    }

    fn accept_status(&mut self, packet: &Packet<'_>) {
        let Ok(status) = StatusRepr::parse(packet) else {
            return self.counters().stream_malformed.inc();
        };
        let Some(index) = self.fabric.endpoint_of(status.dst_epid) else {
            return self.counters().chdr_unroutable.inc();
        };
        let out = &mut self.endpoints[index].out;
        match out.accept_status(&status) {
            Ok(taken) => {
                let excess = taken == StatusTaken::Excess;
                self.counters().rx_status_packets.inc();
                self.counters().rx_status_excess.add(u64::from(excess));
            }
            Err(_) => self.counters().rx_status_invalid.inc(),
        }
    }
}
