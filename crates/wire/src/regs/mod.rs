//! Register maps that the host and the device share.
//!
//! [`sep`] is reached by management packets; [`client_zero`], [`dsp`] and [`radio`] by control
//! packets.

pub mod client_zero;
pub mod dsp;
pub mod radio;
pub mod sep;
