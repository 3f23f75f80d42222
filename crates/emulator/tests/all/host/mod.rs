//! A minimal host: enough to open a radio and stream from it, over real sockets.

use millstream_emulator::RunningRadio;
use millstream_wire::chdr::{Packet, Width};
use millstream_wire::ctrl::{ControlStatus, CtrlRepr, DataWords, Op};
use millstream_wire::mgmt::{MgmtRepr, NodeInfo, Op as Hop};
use millstream_wire::stream::{CommandRepr, StatusRepr};
use millstream_wire::{Epid, mpm, regs::sep};
use rmpv::Value;
use std::cell::Cell;
use std::io::Write;
use std::net::{SocketAddrV4, TcpStream, UdpSocket};
use std::time::Duration;

/// Long, as the machine may be busy: these tests do not measure speed.
const PATIENCE: Duration = Duration::from_secs(20);

/// A host endpoint: an id and its socket.
pub struct HostEndpoint {
    pub socket: UdpSocket,
    pub epid: Epid,
    seq: u16,
    /// A stream command that came before the answer to the request behind it.
    early: Cell<Option<CommandRepr>>,
}

/// The RPC connection and its claim.
pub struct Rpc {
    stream: TcpStream,
    token: Value,
}

/// Returns a discovery reply's fields as text.
pub fn discover(radio: &RunningRadio) -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut buffer = [0; 2048];
    socket.send_to(mpm::DISCOVERY_REQUEST, radio.discovery_addr()).unwrap();
    let (length, from) = socket.recv_from(&mut buffer).unwrap();
    assert_eq!(from, radio.discovery_addr().into(), "it answers from its own address");
    let reply = mpm::DiscoveryReply::parse(&buffer[..length]).unwrap().to_string();
    let echo = [&mpm::ECHO_PING[..], &[7; 1400]].concat();
    socket.send_to(&echo, radio.discovery_addr()).unwrap();
    let (length, _) = socket.recv_from(&mut buffer).unwrap();
    assert_eq!(buffer[..length], echo);
    reply
}

impl Rpc {
    pub fn claim(radio: &RunningRadio) -> Self {
        let stream = TcpStream::connect(radio.rpc_addr()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut rpc = Self { stream, token: Value::Nil };
        rpc.token = rpc.raw("claim", vec![Value::from("test")]).unwrap();
        rpc
    }

    /// Calls with the token as first argument.
    pub fn call(&mut self, method: &str, args: &[Value]) -> Value {
        let args = [std::slice::from_ref(&self.token), args].concat();
        self.raw(method, args).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn raw(&mut self, method: &str, args: Vec<Value>) -> Result<Value, Value> {
        let parts = vec![Value::from(0), Value::from(5), Value::from(method), Value::Array(args)];
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, &Value::Array(parts)).unwrap();
        self.stream.write_all(&bytes).unwrap();
        let reply = rmpv::decode::read_value(&mut self.stream).unwrap();
        let [_, _, error, result] =
            <[Value; 4]>::try_from(reply.as_array().unwrap().clone()).unwrap();
        if error.is_nil() { Ok(result) } else { Err(error) }
    }
}

impl HostEndpoint {
    /// Returns a socket whose id is registered with the radio and routed.
    pub fn connect(radio: &RunningRadio, epid: u16) -> Self {
        Self::connect_by(radio.chdr_addr(), epid, 0)
    }

    /// Returns a socket whose id is registered at an address of a radio, that of link `link`.
    pub fn connect_by(address: SocketAddrV4, epid: u16, link: u32) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.connect(address).unwrap();
        let mut endpoint = Self { socket, epid: Epid(epid), seq: 0, early: Cell::default() };
        endpoint.manage(&[&[Hop::Advertise, Hop::Return]]);
        endpoint
            .manage(&[&[Hop::Nop], &[Hop::CfgWrite { address: epid, value: link }, Hop::Return]]);
        endpoint
    }

    /// Gives the endpoint at crossbar port `port` its id and a route to it.
    pub fn adopt(&mut self, port: u16, epid: u16) -> NodeInfo {
        self.set(port, sep::RESET_AND_FLUSH, sep::RESET_ALL);
        self.set(port, sep::EPID_SELF, epid.into());
        let route = Hop::CfgWrite { address: epid, value: port.into() };
        let answer =
            self.manage(&[&[Hop::Nop], &[route, Hop::SelDest(port)], &[Hop::InfoReq, Hop::Return]]);
        match answer[..] {
            [Hop::InfoResp(info)] => info,
            _ => panic!("{answer:?}"),
        }
    }

    /// Writes a register of the endpoint at crossbar port `port`.
    pub fn set(&mut self, port: u16, address: u16, value: u32) {
        let write = [Hop::CfgWrite { address, value }, Hop::Return];
        self.manage(&[&[Hop::Nop], &[Hop::SelDest(port)], &write]);
    }

    /// Reads a register of the endpoint at crossbar port `port`.
    pub fn get(&mut self, port: u16, address: u16) -> u32 {
        let read = [Hop::CfgRead { address }, Hop::Return];
        match self.manage(&[&[Hop::Nop], &[Hop::SelDest(port)], &read])[..] {
            [Hop::CfgReadResp { value, .. }] => value,
            ref other => panic!("{other:?}"),
        }
    }

    /// Runs a management transaction; returns the answers.
    pub fn manage(&mut self, hops: &[&[Hop]]) -> Vec<Hop> {
        let mut request = MgmtRepr::request(self.epid, self.seq);
        self.seq = self.seq.wrapping_add(1);
        hops.iter().for_each(|hop| request.push_hop(hop).unwrap());
        request.push_hop(&[Hop::Nop]).unwrap();
        self.send(|buffer| request.emit(Width::W64, buffer));
        let mut buffer = [0; 9000];
        let mut packet = self.recv(&mut buffer);
        if let Ok(command) = CommandRepr::parse(&packet) {
            self.early.set(Some(command));
            packet = self.recv(&mut buffer);
        }
        let reply = MgmtRepr::parse(&packet).unwrap();
        assert_eq!((reply.dst_epid, reply.seq), (self.epid, request.seq));
        reply.hops().next().unwrap()[1..].to_vec()
    }

    /// Runs a control transaction with port `port` behind endpoint `dst`; returns the value read.
    pub fn control(&mut self, dst: u16, port: u16, op: Op, address: u32, value: u32) -> u32 {
        let request = CtrlRepr {
            dst_epid: Epid(dst),
            src_epid: self.epid,
            dst_port: port,
            src_port: port,
            ctrl_seq: (self.seq % 64) as u8,
            address,
            op,
            data: DataWords::one(value),
            ..CtrlRepr::default()
        };
        self.seq = self.seq.wrapping_add(1);
        self.send(|buffer| request.emit(Width::W64, buffer));
        let mut buffer = [0; 9000];
        let ack = CtrlRepr::parse(&self.recv(&mut buffer)).unwrap();
        assert_eq!(
            (ack.is_ack, ack.ctrl_seq, ack.status),
            (true, request.ctrl_seq, ControlStatus::Ok)
        );
        ack.data.first()
    }

    /// Waits for the radio's stream command.
    pub fn expect_command(&self) -> CommandRepr {
        let mut buffer = [0; 9000];
        let early = self.early.take();
        early.unwrap_or_else(|| CommandRepr::parse(&self.recv(&mut buffer)).unwrap())
    }

    /// Grants credit.
    pub fn send_status(&self, status: &StatusRepr) {
        self.send(|buffer| status.emit(Width::W64, buffer));
    }

    /// Receives the next packet.
    pub fn recv<'a>(&self, buffer: &'a mut [u8]) -> Packet<'a> {
        let length = self.socket.recv(buffer).unwrap();
        Packet::parse(&buffer[..length], Width::W64).unwrap()
    }

    fn send(&self, emit: impl FnOnce(&mut [u8]) -> millstream_wire::Result<usize>) {
        let mut buffer = [0; 1024];
        let length = emit(&mut buffer).unwrap();
        self.socket.send(&buffer[..length]).unwrap();
    }
}
