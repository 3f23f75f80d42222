//! Packet formats of networked radios: CHDR, RFNoC management and control, MPM discovery.
