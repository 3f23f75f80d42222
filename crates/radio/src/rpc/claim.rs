//! The claim on a device, kept alive from a thread of its own.

use std::net::SocketAddrV4;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rmpv::Value;

use super::{CALL_TIMEOUT, RpcClient, RpcError};

/// How often the claim is renewed. A device drops it after about 5 s of silence.
pub const RECLAIM_PERIOD: Duration = Duration::from_secs(1);

/// A claimed device. Dropping it gives the device back.
#[derive(Debug)]
pub struct Claim {
    calls: Mutex<RpcClient>,
    token: Value,
    keeper: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
    lost: Arc<Mutex<Option<String>>>,
}

impl Claim {
    /// Claims the device at `address` under the name `session` and starts to renew the claim.
    ///
    /// # Errors
    /// [`RpcError`]; `Remote` with a hint if another program holds the device.
    pub fn new(address: SocketAddrV4, session: &str) -> Result<Self, RpcError> {
        let mut keeper = RpcClient::connect(address)?;
        let calls = RpcClient::connect(address)?;
        let token = keeper.call("claim", vec![session.into()], CALL_TIMEOUT)?;
        if !(token.is_str() || token.is_bin()) {
            return Err(keeper.protocol("claim", "a token that is no string"));
        }
        let lost = Arc::new(Mutex::new(None));
        let (stop, stopped) = mpsc::channel();
        let thread = {
            let (token, lost) = (token.clone(), Arc::clone(&lost));
            thread::Builder::new()
                .name("radio-claim".into())
                .spawn(move || keep(keeper, &token, &stopped, &lost))
                .map_err(|source| RpcError::Connect { address, source })?
        };
        Ok(Self { calls: Mutex::new(calls), token, keeper: Some((stop, thread)), lost })
    }

    /// Calls a method that wants the claim's token, which is put before `arguments`.
    ///
    /// # Errors
    /// [`RpcError`].
    pub fn call(&self, method: &str, arguments: &[Value]) -> Result<Value, RpcError> {
        self.call_within(method, arguments, CALL_TIMEOUT)
    }

    /// The same with a bound of its own.
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

    /// Calls a method that anybody may call.
    ///
    /// # Errors
    /// [`RpcError`].
    pub fn call_open(&self, method: &str) -> Result<Value, RpcError> {
        self.lock().call(method, Vec::new(), CALL_TIMEOUT)
    }

    /// An error that says that the result of `method` is of the wrong kind.
    pub fn protocol(&self, method: &str, what: &str) -> RpcError {
        self.lock().protocol(method, what)
    }

    /// Why the claim could not be renewed any more, if so.
    pub fn lost(&self) -> Option<String> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, RpcClient> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.keeper.take() {
            drop(stop);
            // The thread has no way to panic; if it did, there is nothing left to undo here.
            let _ = thread.join();
        }
    }
}

/// Renews the claim until told to stop, then gives it back.
fn keep(
    mut client: RpcClient,
    token: &Value,
    stopped: &mpsc::Receiver<()>,
    lost: &Mutex<Option<String>>,
) {
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(RECLAIM_PERIOD) {
        if let Err(error) = client.call("reclaim", vec![token.clone()], CALL_TIMEOUT) {
            *lost.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
            return;
        }
    }
    // A device that does not hear this drops the claim by itself.
    let _ = client.call("unclaim", vec![token.clone()], CALL_TIMEOUT);
}
