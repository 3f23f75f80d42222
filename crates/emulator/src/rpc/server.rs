//! The management port: requests in, answers out, by MessagePack-RPC or by gRPC.

use super::message::LIMITS;
use super::{Mpm, message};
use crate::counters::Counters;
use crate::faults::{DeviceFaults, Management};
use crate::tcp::{Malformed, Service, TcpEvent};
use millstream_mpm::{GrpcServer, RpcKind, could_be_http2};
use millstream_wire::msgpack::{Scan, scan};
use std::sync::Arc;

/// The calls of hosts as a [`Service`].
pub(crate) struct Rpc {
    pub mpm: Mpm,
    pub counters: Arc<Counters>,
    pub machine: Arc<DeviceFaults>,
}

/// How a client speaks.
pub(crate) enum RpcSession {
    /// It has said nothing.
    Unknown,
    Msgpack,
    Grpc(Box<GrpcServer>),
}

impl Service for Rpc {
    type Session = RpcSession;

    fn begin(&mut self, unsent: &mut Vec<u8>) -> RpcSession {
        match self.mpm.rpc() {
            None => RpcSession::Unknown,
            Some(RpcKind::Msgpack) => RpcSession::Msgpack,
            Some(RpcKind::Grpc) => {
                let mut server = Box::new(GrpcServer::new());
                // As there is nothing to read, this only prepares the first bytes.
                let _ = server.next_call();
                server.drain_into(unsent);
                RpcSession::Grpc(server)
            }
        }
    }

    fn answer(
        &mut self,
        session: &mut RpcSession,
        unread: &mut Vec<u8>,
        unsent: &mut Vec<u8>,
        now_ns: u64,
    ) -> Result<bool, Malformed> {
        if matches!(session, RpcSession::Unknown) {
            *session = match could_be_http2(unread) {
                _ if unread.is_empty() => return Ok(false),
                true => RpcSession::Grpc(Box::default()),
                false => RpcSession::Msgpack,
            };
        }
        if let RpcSession::Grpc(server) = session {
            server.receive(unread);
            unread.clear();
            let answered = self.answer_grpc(server, now_ns);
            server.drain_into(unsent);
            return answered;
        }
        let Scan::Complete(length) = scan(unread, &LIMITS).map_err(|_| Malformed)? else {
            return Ok(false);
        };
        let request = message::decode(&unread[..length]).ok_or(Malformed)?;
        unread.drain(..length);
        let answer = self.mpm.call(&request.method, &request.args, now_ns);
        self.count(answer.is_err());
        message::encode_reply(unsent, request.msgid, answer);
        Ok(true)
    }

    fn step(&mut self, now_ns: u64) -> bool {
        let mut rebooted = false;
        for order in self.machine.take_management() {
            match order {
                Management::Reboot(keeper) => {
                    self.mpm.power_cycle(keeper);
                    rebooted = true;
                }
                Management::Jump(ticks) => self.mpm.jump(ticks, now_ns),
            }
        }
        if self.mpm.expire_claim(now_ns) {
            self.counters.rpc_claims_expired.inc();
        }
        // No connection survives the silence, however short it was.
        !rebooted && !self.machine.is_rpc_down(now_ns)
    }

    fn note(&self, event: TcpEvent) {
        match event {
            TcpEvent::Accepted => self.counters.rpc_connections.inc(),
            TcpEvent::Malformed => self.counters.rpc_malformed.inc(),
            TcpEvent::Refused => self.counters.rpc_refused.inc(),
        }
    }
}

impl Rpc {
    fn answer_grpc(&mut self, server: &mut GrpcServer, now_ns: u64) -> Result<bool, Malformed> {
        let Some(call) = server.next_call().map_err(|_| Malformed)? else { return Ok(false) };
        let answer = self.mpm.grpc_call(&call, now_ns);
        self.count(answer.is_err());
        server.answer(call, answer);
        Ok(true)
    }

    fn count(&self, is_error: bool) {
        self.counters.rpc_calls.inc();
        self.counters.rate_coercions.set(self.mpm.rate_coercions());
        self.counters.rpc_call_errors.add(u64::from(is_error));
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "grpc_tests.rs"]
mod grpc_tests;
