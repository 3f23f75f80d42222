//! The rules; those with the same facts share a file.

pub(super) mod cards;
pub(super) mod clock_source;
pub(super) mod dpdk;
pub(super) mod governor;
pub(super) mod huge_pages;
pub(super) mod idle_states;
pub(super) mod interrupt_time;
pub(super) mod interrupts;
pub(super) mod irqbalance;
pub(super) mod isolation;
pub(super) mod limits;
pub(super) mod mitigations;
pub(super) mod numa;
pub(super) mod packet_priorities;
pub(super) mod preemption;
pub(super) mod rt_throttling;
pub(super) mod same_pages;
pub(super) mod smt;
pub(super) mod socket_buffers;
pub(super) mod softnet;
pub(super) mod steal;
pub(super) mod steering;
pub(super) mod swap;
pub(super) mod timer_migration;
pub(super) mod transparent;
pub(super) mod watchdog;
