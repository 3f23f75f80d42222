//! The management port: requests in, answers out.

use super::message::LIMITS;
use super::{Mpm, message};
use crate::counters::Counters;
use crate::faults::{DeviceFaults, Management};
use crate::tcp::{Malformed, Service, TcpEvent};
use millstream_wire::msgpack::{Scan, scan};
use std::sync::Arc;

/// MessagePack-RPC as a [`Service`].
pub(crate) struct Rpc {
    pub mpm: Mpm,
    pub counters: Arc<Counters>,
    pub machine: Arc<DeviceFaults>,
}

impl Service for Rpc {
    fn answer(
        &mut self,
        unread: &mut Vec<u8>,
        unsent: &mut Vec<u8>,
        now_ns: u64,
    ) -> Result<bool, Malformed> {
        let Scan::Complete(length) = scan(unread, &LIMITS).map_err(|_| Malformed)? else {
            return Ok(false);
        };
        let request = message::decode(&unread[..length]).ok_or(Malformed)?;
        unread.drain(..length);
        let answer = self.mpm.call(&request.method, &request.args, now_ns);
        self.counters.rpc_calls.inc();
        self.counters.rate_coercions.set(self.mpm.rate_coercions());
        self.counters.rpc_call_errors.add(u64::from(answer.is_err()));
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

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
