//! The claim on a device, renewed by a thread for all claims.

use std::net::SocketAddrV4;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmpv::Value;

use super::keeper::KeptClaim;
use super::{CALL_TIMEOUT, RpcClient, RpcError};

/// The interval of renewals. A device drops a claim after about 5 s of silence.
pub const RECLAIM_PERIOD: Duration = Duration::from_secs(1);

/// A claimed device. Dropping it releases the device.
#[derive(Debug)]
pub struct DeviceClaim {
    calls: Mutex<RpcClient>,
    token: Value,
    lost: ClaimLoss,
    /// Gives the claim back when it is dropped.
    _kept: KeptClaim,
}

/// Why a claim was lost, if it was; for owners that outlive it.
#[derive(Debug, Clone, Default)]
pub struct ClaimLoss(Arc<Mutex<Option<String>>>);

impl ClaimLoss {
    /// Returns the reason if the claim could not be renewed.
    pub fn reason(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn note(&self, error: &RpcError) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.what());
    }

    /// Whether both are of the same claim.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl DeviceClaim {
    /// Claims the device at `address` under the name `session` and starts to renew the claim.
    ///
    /// # Errors
    /// [`RpcError`]; `Remote` with a hint if another program holds the device.
    pub fn new(address: SocketAddrV4, session: &str) -> Result<Self, RpcError> {
        let mut keeper = RpcClient::connect(address)?;
        let mut calls = RpcClient::connect(address)?;
        let token = keeper.call("claim", vec![session.into()], CALL_TIMEOUT)?;
        if !(token.is_str() || token.is_bin()) {
            return Err(keeper.protocol("claim", "a token that is not a string"));
        }
        calls.speak_as(&keeper)?;
        let lost = ClaimLoss::default();
        let kept = keeper.keep(token.clone(), lost.clone());
        let kept = kept.map_err(|source| RpcError::Connect { address, source })?;
        Ok(Self { calls: Mutex::new(calls), token, lost, _kept: kept })
    }

    /// Returns what the device has given to this claim.
    pub fn token(&self) -> &[u8] {
        match &self.token {
            Value::String(text) => text.as_bytes(),
            Value::Binary(bytes) => bytes,
            _ => &[],
        }
    }

    /// Calls a method that takes the claim's token, which is put before `arguments`.
    ///
    /// The method may be repeated without harm: after a time-out or on a broken connection it is
    /// called again, once, on a new connection.
    ///
    /// # Errors
    /// [`RpcError`].
    pub fn call(&self, method: &str, arguments: &[Value]) -> Result<Value, RpcError> {
        match self.call_within(method, arguments, CALL_TIMEOUT) {
            Err(RpcError::Timeout { .. } | RpcError::Broken { .. }) => {
                self.lock().reconnect()?;
                self.call_within(method, arguments, CALL_TIMEOUT)
            }
            outcome => outcome,
        }
    }

    /// Does the same with a given time limit, and only once.
    ///
    /// # Errors
    /// [`RpcError`].
    pub fn call_within(
        &self,
        method: &str,
        arguments: &[Value],
        timeout: Duration,
    ) -> Result<Value, RpcError> {
        let mut all = vec![self.token.clone()];
        all.extend_from_slice(arguments);
        self.lock().call(method, all, timeout)
    }

    /// Calls a method that needs no claim.
    ///
    /// # Errors
    /// [`RpcError`].
    pub fn call_open(&self, method: &str) -> Result<Value, RpcError> {
        self.lock().call(method, Vec::new(), CALL_TIMEOUT)
    }

    /// Returns the error for a result of `method` with the wrong kind.
    pub fn protocol(&self, method: &str, what: &str) -> RpcError {
        self.lock().protocol(method, what)
    }

    /// Returns the reason if the claim could not be renewed.
    pub fn lost(&self) -> Option<String> {
        self.lost.reason()
    }

    /// Returns the same for owners that outlive the claim.
    pub fn loss(&self) -> ClaimLoss {
        self.lost.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, RpcClient> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::thread::{self, JoinHandle};

    /// Answers every call on `stream` with "token", except those whose number `skip` names.
    fn answer(mut stream: TcpStream, skip: &'static [usize]) -> usize {
        let mut calls = 0;
        while let Ok(call) = rmpv::decode::read_value(&mut stream) {
            let id = call.as_array().map(|call| call[1].clone()).unwrap_or(Value::Nil);
            if !skip.contains(&calls) {
                let reply = Value::Array(vec![1.into(), id, Value::Nil, "token".into()]);
                rmpv::encode::write_value(&mut stream, &reply).unwrap();
            }
            calls += 1;
        }
        calls
    }

    /// Returns a claim on a device that does not answer some calls of the claim's connection: call
    /// 0 is the claim itself, the others renew it.
    fn claim_on(skip: &'static [usize]) -> (DeviceClaim, JoinHandle<usize>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = match listener.local_addr().unwrap() {
            std::net::SocketAddr::V4(address) => address,
            std::net::SocketAddr::V6(_) => unreachable!("bound to IPv4"),
        };
        let device = thread::spawn(move || {
            let keeper = listener.accept().unwrap().0;
            let _calls = listener.accept().unwrap().0;
            answer(keeper, skip)
        });
        (DeviceClaim::new(address, "test").unwrap(), device)
    }

    #[test]
    fn one_unanswered_renewal_is_forgiven() {
        let (claim, device) = claim_on(&[1]);
        // The missed one takes a period and a time-out, the next comes a period later.
        thread::sleep(3 * RECLAIM_PERIOD + CALL_TIMEOUT);
        assert_eq!(claim.lost(), None);
        drop(claim);
        assert!(device.join().unwrap() >= 3, "claim, the missed renewal, one more");
    }

    #[test]
    fn two_in_a_row_end_the_claim_with_the_reason() {
        let (claim, device) = claim_on(&[1, 2, 3, 4, 5, 6, 7, 8]);
        let until = std::time::Instant::now() + 10 * CALL_TIMEOUT;
        while claim.lost().is_none() {
            assert!(std::time::Instant::now() < until, "the loss was never noticed");
            thread::sleep(Duration::from_millis(20));
        }
        assert!(claim.lost().unwrap().contains("did not answer the call \"reclaim\""));
        let begun = std::time::Instant::now();
        drop(claim);
        assert!(begun.elapsed() < CALL_TIMEOUT, "there is nobody to wait for");
        assert_eq!(device.join().unwrap(), 3, "claim and two renewals; nothing to give back");
    }

    #[test]
    fn a_connection_that_breaks_is_replaced_and_the_call_repeated() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let std::net::SocketAddr::V4(address) = listener.local_addr().unwrap() else {
            unreachable!("bound to IPv4")
        };
        let device = thread::spawn(move || {
            let keeper = listener.accept().unwrap().0;
            let keeper = thread::spawn(move || answer(keeper, &[]));
            // The server closes the connection in the first call, then serves.
            let mut calls = listener.accept().unwrap().0;
            rmpv::decode::read_value(&mut calls).unwrap();
            drop(calls);
            let calls = answer(listener.accept().unwrap().0, &[]);
            (keeper.join().unwrap(), calls)
        });
        let claim = DeviceClaim::new(address, "test").unwrap();
        assert_eq!(claim.call("get_spam", &[]).unwrap(), "token".into());
        assert_eq!(claim.lost(), None);
        drop(claim);
        assert_eq!(device.join().unwrap(), (2, 1), "claim and unclaim; the call");
    }
}
