//! The management port: MessagePack-RPC and gRPC over TCP.

mod boards;
mod caller;
mod claim;
mod description;
mod message;
mod methods;
mod pins;
mod remote;
mod sensors;
mod server;
mod values;

pub(crate) use methods::{Identity, Mpm};
pub(crate) use server::Rpc;
