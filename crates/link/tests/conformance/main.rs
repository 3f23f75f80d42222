//! One conformance suite for frame links: the same rules for every link.
//!
//! A rule is a function of a [`wire::Wire`]: frames transmitted at one end are received at the
//! other. Adding a link takes one line in the table at the end of this file. Where namespaces
//! cannot be made, the rules that need them report that and pass.
//!
//! `MILLSTREAM_FRAMES=N` sets the number of frames that the endurance rule sends over each link.

mod delivery;
mod endurance;
mod faults;
mod huge;
mod interface;
mod ownership;
mod pressure;
#[allow(dead_code, reason = "links over an interface follow")]
mod wire;

/// A test of each rule on one link.
macro_rules! rules {
    ($make:expr; $($file:ident: $($rule:ident),*;)*) => {
        $($(
            #[test]
            fn $rule() {
                if let Some(mut wire) = $make {
                    crate::$file::$rule(&mut wire);
                    wire.at_rest();
                }
            }
        )*)*
    };
}

/// A module of tests for each link.
macro_rules! links {
    ($($name:ident: $make:expr;)*) => {
        $(mod $name {
            #[allow(unused_imports, reason = "not every link needs both")]
            use crate::wire::{Shape, Wire};

            rules! {
                $make;
                delivery: every_size_arrives_whole, order_is_kept_in_batches_of_every_size,
                    a_look_never_waits, counters_count_frames_and_bytes;
                ownership: the_memory_is_where_frames_are, buffers_run_out_and_come_back,
                    frames_go_back_in_any_order, what_does_not_fit_stays_with_the_caller,
                    received_frames_forward_as_they_are,
                    frames_of_another_link_are_refused, steady_state_allocates_nothing;
                pressure: a_user_that_keeps_everything_loses_counted_frames,
                    a_user_that_does_not_look_loses_counted_frames,
                    a_sender_that_does_not_flush_fills_the_ring;
                interface: only_what_is_wanted_comes, a_sleeper_wakes_when_frames_come,
                    an_interface_that_was_down_carries_again, an_interface_that_is_gone_says_so,
                    a_closed_link_opens_again_at_once;
                faults: rules_that_hit_nothing_change_nothing,
                    what_is_missing_is_what_faults_took, copies_come_directly_behind,
                    copies_do_not_pile_up,
                    what_is_kept_back_comes_later_and_stays_in_the_census,
                    damage_is_done_where_frames_lie;
                endurance: no_frame_is_lost_from_the_pool;
            }
        })*
    };
}

links! {
    single: Wire::single();
    pair: Wire::memory(None);
    pair_in_parts: Wire::memory(Some(512));
    xdp_generic: Wire::veth(Shape::new("xdp:IF,mode=generic"));
    xdp_native: Wire::veth(Shape::new("xdp:IF,mode=native").queues(4));
    xdp_jumbo: Wire::veth(Shape::new("xdp:IF").mtu(9000));
    xdp_tx_queues: Wire::veth(Shape::new("xdp:IF,tx_queues=4").queues(4));
    packet: Wire::veth(Shape::new("packet:IF"));
    packet_jumbo: Wire::veth(Shape::new("packet:IF,qdisc_bypass=off").mtu(9000));
    dpdk_memif: Wire::dpdk(&[
        "dpdk:memif0NN,role=server,socket=PP,ring=4096",
        "dpdk:memif1NN,socket=PP,ring=4096",
    ]);
    dpdk_vhost: Wire::dpdk(&[
        "dpdk:vhost0NN,iface=PP,mtu=1500",
        "dpdk:virtio_user0NN,path=PP,mtu=1500",
    ]);
    dpdk_ring: Wire::dpdk(&["dpdk:ring0NN,mtu=1500"]);
}
