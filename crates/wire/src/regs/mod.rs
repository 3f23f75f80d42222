//! Register maps that the host and the device share.
//!
//! [`sep`] is reached by management packets, the others by control packets.

pub mod client_zero;
pub mod dsp;
pub mod front_end;
pub mod null;
pub mod radio;
pub mod replay;
pub mod sep;
pub mod sig_gen;
pub mod spi;
