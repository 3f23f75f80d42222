//! A stream endpoint and its registers.

use super::in_stream::{Cause, InStream};
use super::out_stream::OutStream;
use super::tx_fifo::TxFifo;
use millstream_wire::Epid;
use millstream_wire::chdr::Width;
use millstream_wire::mgmt::{Node, NodeInfo};
use millstream_wire::regs::sep;
use millstream_wire::stream::{CommandRepr, StatusRepr};

/// A packet source and sink behind a crossbar port. Each channel of the radio has one.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// Its index; instance 0 also takes control packets.
    pub instance: u16,
    /// The id assigned by the host; [`Epid::NONE`] before that.
    pub epid: Epid,
    pub out: OutStream,
    pub input: InStream,
    /// Received packets that the radio has not taken.
    pub fifo: TxFifo,
    /// The number of its next control packet to a host.
    control_seq: u16,
}

/// The amount of data in flight towards it that an endpoint allows a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CreditWindow {
    /// The limit for a host that also counts packets.
    pub bytes: u64,
    /// The limit for a host that does not count packets.
    pub cautious_bytes: u64,
    pub packets: u32,
}

impl Endpoint {
    /// Returns an endpoint without id of a device with this CHDR width, with the receive buffer
    /// `fifo` and the advertised `window`.
    pub fn new(instance: u16, width: Width, window: CreditWindow, fifo: TxFifo) -> Self {
        let (out, input) = (OutStream::new(width), InStream::new(window));
        Self { instance, epid: Epid::NONE, out, input, fifo, control_seq: 0 }
    }

    /// Restores the state after power-on.
    pub fn reset(&mut self) {
        (self.epid, self.control_seq) = (Epid::NONE, 0);
        self.out.power_on();
        self.restart_input();
    }

    /// Returns the status of the stream towards it, to be sent now.
    pub fn report(&mut self, cause: Cause) -> StatusRepr {
        self.input.report(self.epid, cause)
    }

    /// Returns whether it takes control packets.
    pub fn has_control(&self) -> bool {
        self.instance == 0
    }

    /// Returns the number of the control packet that is sent now.
    pub fn next_control_seq(&mut self) -> u16 {
        let seq = self.control_seq;
        self.control_seq = seq.wrapping_add(1);
        seq
    }

    /// Returns its answer to an information request.
    pub fn info(&self, device_id: u16) -> NodeInfo {
        NodeInfo {
            device_id,
            instance: self.instance,
            node: Node::StreamEndpoint {
                control: self.has_control(),
                data: true,
                inputs: 1,
                outputs: 1,
                reports_errors: true,
            },
        }
    }

    /// Writes a register. Returns a stream command to be sent to the host, if there is one.
    pub fn write(&mut self, address: u16, value: u32) -> Option<CommandRepr> {
        let out = &mut self.out;
        let (low, high) = (0xffff_ffff, 0xff_0000_0000);
        match address {
            sep::EPID_SELF => self.epid = Epid(value as u16),
            sep::RESET_AND_FLUSH => self.flush(value),
            sep::OSTRM_CTRL_STATUS => {
                return out.configure(sep::StreamCtrl::from_word(value), self.epid);
            }
            sep::OSTRM_DST_EPID => out.dst_epid = Epid(value as u16),
            sep::OSTRM_FC_FREQ_BYTES_LO => {
                out.period_bytes = out.period_bytes & high | u64::from(value);
            }
            sep::OSTRM_FC_FREQ_BYTES_HI => {
                out.period_bytes = out.period_bytes & low | u64::from(value & 0xff) << 32;
            }
            sep::OSTRM_FC_FREQ_PKTS => out.period_packets = value & 0xff_ffff,
            sep::OSTRM_FC_HEADROOM => {
                out.headroom_bytes = value as u16;
                out.headroom_packets = (value >> 16) as u8;
            }
            // The item format is only needed by byte swapping hardware.
            sep::ISTRM_CTRL_STATUS => self.restart_input(),
            _ => {}
        }
        None
    }

    /// Reads a register; those without content read as 0.
    pub fn read(&self, address: u16) -> u32 {
        let (bytes, packets) = self.out.capacity();
        match address {
            sep::EPID_SELF => self.epid.0.into(),
            sep::OSTRM_CTRL_STATUS => self.out.status_word(),
            sep::OSTRM_DST_EPID => self.out.dst_epid.0.into(),
            sep::OSTRM_FC_FREQ_BYTES_LO => self.out.period_bytes as u32,
            sep::OSTRM_FC_FREQ_BYTES_HI => (self.out.period_bytes >> 32) as u32,
            sep::OSTRM_FC_FREQ_PKTS => self.out.period_packets,
            sep::OSTRM_FC_HEADROOM => {
                u32::from(self.out.headroom_bytes) | u32::from(self.out.headroom_packets) << 16
            }
            sep::OSTRM_BUFF_CAP_BYTES_LO => bytes as u32,
            sep::OSTRM_BUFF_CAP_BYTES_HI => (bytes >> 32) as u32,
            sep::OSTRM_BUFF_CAP_PKTS => packets,
            _ => 0,
        }
    }

    fn flush(&mut self, bits: u32) {
        if bits & sep::RESET_CTRL != 0 {
            self.control_seq = 0;
        }
        if bits & sep::RESET_OSTRM != 0 {
            self.out.reset();
        }
        if bits & sep::RESET_ISTRM != 0 {
            self.restart_input();
        }
    }

    fn restart_input(&mut self) {
        self.input.reset();
        self.fifo.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::tx_fifo::FifoSize;

    fn endpoint(instance: u16) -> Endpoint {
        let fifo = TxFifo::new(FifoSize { bytes: 1008, behind_bytes: 0, packets: 10 }, false);
        Endpoint::new(
            instance,
            Width::W64,
            CreditWindow { bytes: 1000, cautious_bytes: 1000, packets: 10 },
            fifo,
        )
    }

    #[test]
    fn registers_read_back_what_was_written() {
        let mut endpoint = endpoint(0);
        for (address, value) in [
            (sep::EPID_SELF, 7),
            (sep::OSTRM_DST_EPID, 0xffff),
            (sep::OSTRM_FC_FREQ_BYTES_LO, 0xffff_fff0),
            (sep::OSTRM_FC_FREQ_BYTES_HI, 0x12),
            (sep::OSTRM_FC_FREQ_PKTS, 0xff_ffff),
            (sep::OSTRM_FC_HEADROOM, 0x12_3456),
        ] {
            assert_eq!(endpoint.write(address, value), None);
            assert_eq!(endpoint.read(address), value, "{address:#x}");
        }
        assert_eq!(endpoint.out.period_bytes, 0x12_ffff_fff0);
    }

    #[test]
    fn starting_a_stream_sends_init_to_its_destination() {
        let mut endpoint = endpoint(1);
        endpoint.write(sep::EPID_SELF, 3);
        endpoint.write(sep::OSTRM_DST_EPID, 9);
        endpoint.write(sep::OSTRM_FC_FREQ_BYTES_LO, 500);
        assert_eq!(endpoint.write(sep::OSTRM_CTRL_STATUS, 0x0A), None, "no start bit");
        let init = endpoint.write(sep::OSTRM_CTRL_STATUS, 0x0B).unwrap();
        assert_eq!((init.dst_epid, init.src_epid, init.bytes), (Epid(9), Epid(3), 500));
        assert_eq!(endpoint.read(sep::OSTRM_CTRL_STATUS), sep::STATUS_SETUP_PENDING | 0x0A);
        endpoint.write(sep::RESET_AND_FLUSH, sep::RESET_ALL);
        assert_eq!(endpoint.read(sep::OSTRM_CTRL_STATUS), 0x0A);
        assert_eq!(endpoint.epid, Epid(3), "a flush keeps the id");
    }

    #[test]
    fn only_the_first_endpoint_takes_control_packets() {
        for (instance, want) in [(0, true), (1, false)] {
            let info = endpoint(instance).info(5);
            assert!(matches!(info.node, Node::StreamEndpoint { control, .. } if control == want));
            assert_eq!((info.device_id, info.instance), (5, instance));
        }
    }
}
