//! A client and an emulated radio in this process.

mod receive;
mod rtl_tcp;
