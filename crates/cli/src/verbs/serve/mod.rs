//! `millstream serve`: a radio for programs that speak other protocols. One file a protocol.

mod rtl_tcp;

group! {
    typed;
    /// Serves a radio to programs that speak another protocol.
    ServeVerb: RtlTcp(rtl_tcp),
}
