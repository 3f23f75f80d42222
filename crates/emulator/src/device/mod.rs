//! The radio behind the CHDR port.
mod endpoint;
mod in_stream;
mod out_stream;
mod rx_channel;
