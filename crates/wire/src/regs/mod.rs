//! Register maps that the host and the device share.
//!
//! [`sep`] is reached by management packets; [`client_zero`], [`dsp`], [`radio`] and [`e320`] by
//! control packets.

pub mod client_zero;
pub mod dsp;
pub mod e320;
pub mod radio;
pub mod sep;
