//! Recorded exchanges with a radio's logic, replayed to the emulated radio
//! (`tests/exchanges/README.md`).

mod compare;
mod replay;

use compare::Statuses;

/// What is known about a file.
#[derive(Debug, Clone, Copy)]
enum Known {
    /// The emulated radio answers as the logic does.
    Same,
    /// It differs at this many places at most, for this reason. The number may only shrink.
    Differs(usize, &'static str),
}

use Known::{Differs, Same};

/// Replays a file; fails when it differs more, or less, than is known.
fn check(file: &str, statuses: Statuses, known: Known) {
    let differences = replay::differences(file, statuses);
    let count = differences.len();
    let list = differences.into_iter().take(12).collect::<Vec<_>>().join("\n  ");
    match known {
        Same => assert!(count == 0, "{file}: {count} differences:\n  {list}"),
        Differs(most, why) => {
            assert!(count > 0, "{file}: no difference is left: say `Same` in its row ({why})");
            assert!(count <= most, "{file}: {count} differences, not {most} ({why}):\n  {list}");
            println!("{file}: {count} of {most} known differences ({why}):\n  {list}");
        }
    }
}

/// One test for each file, and a list of all.
macro_rules! exchanges {
    ($($name:ident: $file:literal, $statuses:expr, $known:expr;)*) => {
        const FILES: &[&str] = &[$($file),*];

        $(#[test]
        fn $name() {
            check($file, $statuses, $known);
        })*
    };
}

use Statuses::{Exact, Free, Interleaved, WithinPacket};

exchanges! {
    the_order_of_uhd_finds_every_node:
        "01-discovery", Exact, Same;
    answers_through_the_crossbar_leave_for_whom_advertise_named:
        "02-discovery-wrong-order", Exact, Same;
    operations_behind_return_lead_nowhere:
        "03-management-oddities", Exact, Same;
    a_read_of_the_crossbar_stops_everything_behind_the_transport:
        "04-crossbar-config-read", Exact, Same;
    every_control_request_is_answered_as_the_logic_does:
        "10-control", Exact, Same;
    an_unknown_register_of_the_radio_core_silences_its_block:
        "11-unknown-radio-register", Exact, Same;
    a_full_command_fifo_holds_up_the_whole_endpoint:
        "12-command-fifo", Interleaved, Same;
    an_acknowledgement_that_nothing_waits_for_silences_the_block:
        "13-unsolicited-acknowledgement", Exact, Same;
    packets_without_a_route_leave_for_nowhere:
        "14-unrouted", Exact, Same;
    client_zero_describes_the_device:
        "20-client-zero", Exact, Same;
    a_flush_without_traffic_is_done_at_once:
        "21-flush-idle", Exact, Same;
    a_flush_behind_a_lost_receiver_does_not_end:
        "22-flush-stuck", Exact, Same;
    a_flush_within_a_transmitted_packet_does_not_end:
        "23-flush-stuck-transmit", Exact, Same;
    a_reset_from_the_radio_on_leaves_nothing_behind:
        "24-flush-stuck-radio-first", Exact, Same;
    a_transmit_stream_begins_with_init:
        "30-transmit-stream-set-up", Exact, Same;
    data_out_of_sequence_reach_the_block_all_the_same:
        "31-data-sequence-errors", Exact, Same;
    credits_come_at_the_edge_of_their_period:
        "32-periodic-credits", WithinPacket(1024), Differs(2, "cycles count in a period of a byte");
    a_receive_stream_begins_with_the_hosts_answer:
        "33-receive-stream-set-up", Exact, Same;
    finite_captures_have_their_samples:
        "40-receive-finite", Exact, Same;
    continuous_captures_end_with_their_stop:
        "41-receive-continuous", Exact, Differs(1, "a stop comes a tick earlier or later");
    captures_behind_each_other_lose_a_sample:
        "42-receive-queued", Exact, Same;
    captures_behind_each_other_lose_three_samples_of_one_cycle:
        "43-receive-queued-one-cycle-a-sample", Exact, Same;
    late_captures_and_messages_without_acknowledgement_stop_the_core:
        "44-receive-late", Exact, Same;
    an_overrun_ends_the_capture:
        "45-receive-overrun", Exact, Same;
    an_overrun_waits_for_its_acknowledgement:
        "46-receive-overrun-acknowledgement-withheld", Exact, Same;
    a_command_beyond_the_slots_waits:
        "47-receive-command-slots", Exact, Same;
    a_small_window_is_resynchronised:
        "48-receive-small-window", Exact, Same;
    bursts_are_sent_at_their_time:
        "50-transmit-burst", Exact, Same;
    times_within_a_burst_are_ignored:
        "51-transmit-order-faults", WithinPacket(416), Same;
    an_underrun_ends_its_packet_or_its_burst:
        "53-transmit-underrun", Exact, Same;
    statuses_are_no_snapshots:
        "54-transmit-counts-torn", Free, Same;
    credits_come_within_packets:
        "55-transmit-credits", WithinPacket(1024), Differs(2, "no gaps between packets");
    one_sample_is_a_burst:
        "56-transmit-one-sample", Exact, Differs(4, "lone samples wait in a vendor block");
    tables_forget_the_oldest_of_64:
        "60-tables-of-64", Exact, Same;
    a_null_source_counts_lines:
        "70-null-source", Exact, Differs(314, "no idle cycles between packets");
    a_null_sink_takes_everything:
        "71-null-sink", WithinPacket(1024), Same;
    a_generator_repeats_its_constant:
        "72-siggen", Exact, Differs(6, "a generator without a rate");
}

#[test]
fn every_recorded_file_has_a_test() {
    let folder = std::fs::read_dir(replay::FOLDER).unwrap();
    let mut found: Vec<_> = folder
        .filter_map(|entry| {
            entry
                .unwrap()
                .file_name()
                .into_string()
                .unwrap()
                .strip_suffix(".jsonl")
                .map(str::to_owned)
        })
        .collect();
    found.sort();
    assert_eq!(found, FILES);
}
