//! Devices that are gone.

use millstream_flow::BlockError;

use crate::{RadioError, RxError};

/// A device that did not come back.
#[derive(Debug, thiserror::Error)]
#[error("the radio did not come back within {waited_s:.1} s: {last}")]
#[non_exhaustive]
pub struct NotBack {
    /// The wait, seconds.
    pub waited_s: f64,
    /// The error of the last attempt.
    pub last: BlockError,
}

/// Returns whether an error says that the device is gone, or has forgotten this host.
pub(super) fn is_gone(error: &RxError) -> bool {
    matches!(
        error,
        RxError::DeviceSilent { .. }
            | RxError::SamplesStopped { .. }
            | RxError::Radio(RadioError::Silent { .. } | RadioError::Rpc(_))
    )
}
