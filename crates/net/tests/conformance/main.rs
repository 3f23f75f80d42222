//! One conformance suite for ports: the same rules for every link.
//!
//! A rule is a function of a [`rig::Rig`]: two hosts joined by a network, each with its link.
//! Adding a link takes one line in the table at the end of this file; every rule then runs on it.
//! Where namespaces cannot be made, the rules that need them report that and pass.

mod delivery;
mod hostile;
mod lending;
mod lifetime;
mod network;
mod pressure;
mod rig;
mod waiting;
mod zero_copy;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Runs one rule at a time: the I/O threads of two hosts keep two processors busy. Further threads
/// would wait for a processor, and make each rule take several times as long.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A test of each rule on one link.
macro_rules! rules {
    ($make:expr; $($file:ident: $($rule:ident),*;)*) => {
        $($(
            #[test]
            fn $rule() {
                let _alone = crate::alone();
                if let Some(rig) = $make {
                    crate::$file::$rule(&rig);
                }
            }
        )*)*
    };
}

/// A module of tests for each link.
macro_rules! links {
    ($($name:ident: $make:expr;)*) => {
        $(mod $name {
            #[allow(unused_imports, reason = "some links need no options")]
            use crate::rig::{Rig, Shape};

            rules! {
                $make;
                delivery: the_first_datagrams_wait_for_the_neighbour, every_size_arrives_whole,
                    what_cannot_fit_is_refused, order_is_kept, batches_of_every_size_arrive,
                    trains_are_cut_where_they_should, what_is_too_long_for_the_port_is_not_cut,
                    nothing_is_missed_between_quiet_and_busy_times, sources_are_told_apart;
                lending: lent_datagrams_of_every_size_arrive_whole,
                    lent_datagrams_leave_in_order_and_by_themselves_where_they_must,
                    what_was_begun_stays_until_it_is_begun_anew,
                    what_cannot_go_is_refused_when_lent_or_sent, lending_allocates_nothing;
                waiting: waiting_ends_when_the_time_is_up, a_datagram_wakes_a_waiting_receiver,
                    a_short_wait_sees_what_is_there, steady_state_allocates_nothing;
                lifetime: a_closed_port_opens_again_at_once, one_half_still_holds_the_port,
                    a_port_in_use_is_refused, nobody_listening_costs_the_sender_nothing,
                    a_peer_that_comes_back_is_heard_again, halves_work_on_threads_of_their_own,
                    one_link_carries_the_ports_of_a_radio;
                pressure: a_slow_receiver_loses_counted_datagrams, a_flood_is_accounted_for,
                    a_flood_that_waits_for_nothing_arrives, two_ports_do_not_disturb_each_other,
                    a_slow_port_does_not_stall_another, a_user_that_pauses_resumes_at_once;
                zero_copy: a_payload_lies_in_its_frame;
                network: another_port_gets_nothing, an_interface_that_was_down_carries_again,
                    the_kernel_goes_on_serving_the_interface;
                hostile: hostile_frames_cost_counters, a_forged_error_fails_no_send;
            }
        })*
    };
}

links! {
    udp_loopback: Some(Rig::loopback("udp"));
    udp_loopback_no_gro: Some(Rig::loopback("udp:gro=off"));
    udp_loopback_no_gso: Some(Rig::loopback("udp:gso=off"));
    udp_loopback_plain: Some(Rig::loopback("udp:gro=off,gso=off"));
    udp: Rig::veth(Shape::new("udp", "udp"));
    udp_jumbo: Rig::veth(Shape::new("udp", "udp").mtu(9000));
    memory: Some(Rig::memory(1500, "thread"));
    memory_in_parts: Some(Rig::memory(9000, "thread"));
    memory_inline: Some(Rig::memory(1500, "inline"));
    packet: Rig::veth(Shape::new("packet:veth0", "packet:veth0"));
    packet_jumbo: Rig::veth(Shape::new("packet:veth0", "packet:veth0").mtu(9000));
    packet_inline: Rig::veth(Shape::new("udp", "packet:veth0,io=inline"));
    packet_from_udp: Rig::veth(Shape::new("udp", "packet:veth0"));
    packet_to_udp: Rig::veth(Shape::new("packet:veth0", "udp"));
    xdp_generic: Rig::veth(Shape::new("xdp:veth0,mode=generic", "xdp:veth0,mode=generic"));
    xdp_generic_jumbo:
        Rig::veth(Shape::new("xdp:veth0,mode=generic", "xdp:veth0,mode=generic").mtu(9000));
    xdp_native: Rig::veth(Shape::new("xdp:veth0,mode=native", "xdp:veth0,mode=native"));
    xdp_native_jumbo:
        Rig::veth(Shape::new("xdp:veth0,mode=native", "xdp:veth0,mode=native").mtu(9000));
    xdp_four_queues:
        Rig::veth(Shape::new("xdp:veth0,mode=native", "xdp:veth0,mode=native").queues(4));
    xdp_from_udp: Rig::veth(Shape::new("udp", "xdp:veth0,mode=native"));
    xdp_to_udp: Rig::veth(Shape::new("xdp:veth0,mode=generic", "udp"));
    xdp_offload: Rig::veth(
        Shape::new("xdp:veth0,udp_checksum=offload", "xdp:veth0,mode=native").mtu(9000)
    );
    xdp_offload_to_udp: Rig::veth(Shape::new("xdp:veth0,udp_checksum=offload", "udp").mtu(9000));
    xdp_inline: Rig::veth(Shape::new("udp", "xdp:veth0,mode=native,io=inline"));
}
