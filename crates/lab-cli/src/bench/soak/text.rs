//! The result of a soak as text.

use crate::output::{Join, count};
use crate::table::Table;
use millstream_lab::soak::{CONFIDENCE_PERCENT, Complaint, ProcessVerdict, SoakRecord};

/// A length of time in words: `40 s`, `3.5 min`, `8.0 h`.
pub fn time(seconds: f64) -> String {
    match seconds {
        ..100.0 => format!("{seconds:.0} s"),
        100.0..6000.0 => format!("{:.1} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// A complaint, with the command that repeats its round.
pub fn complaint(record: &SoakRecord, complaint: &Complaint) -> String {
    let Complaint { round, what, text, .. } = complaint;
    let again = again(record, *round);
    format!("millstream: round {round} ({what}): {text}\nrepeat  {again}")
}

/// The command that repeats a round.
fn again(record: &SoakRecord, round: u64) -> String {
    let (root, links) = match record.links.len() {
        1 => ("", " --loopback"),
        _ => ("sudo ", ""),
    };
    let only = match &*record.only {
        "" => String::new(),
        text => format!(" --only '{text}'"),
    };
    format!("{root}millstream-lab bench soak{links} --seed {}{only} --round {round}", record.seed)
}

/// The table, with what was wrong and what the processes held below it.
pub fn of(record: &SoakRecord, verdicts: &[ProcessVerdict]) -> String {
    let mut text = Table::of(&record.faults)
        .left("fault", |(name, _)| name)
        .right("rounds", |(_, tally)| tally.rounds)
        .right("longest_s", |(_, tally)| format!("{:.1}", tally.longest_s))
        .right("hits", |(_, tally)| tally.hits)
        .right("expected", |(_, tally)| tally.expected)
        .right("delivered", |(_, tally)| tally.delivered)
        .right("lost", |(_, tally)| tally.lost_total())
        .right("aligned", |(_, tally)| tally.alignment)
        .right("starved", |(_, tally)| tally.starved)
        .right("wrong", |(_, tally)| tally.complaints)
        .left("lost by", |(_, tally)| match tally.lost.is_empty() {
            true => "nothing".to_owned(),
            false => tally.lost.iter().map(|(cause, count)| format!("{cause} {count}")).join(", "),
        })
        .text();
    for complaint in &record.complaints {
        text += &format!("WRONG: round {} ({}): ", complaint.round, complaint.what);
        text += &complaint.text;
        text += &format!("\n  repeat: {}\n", again(record, complaint.round));
    }
    let parts = record.parts.len() as u64;
    text += &format!(
        "{} in {}, seed {}, {}",
        count(record.rounds, "round"),
        time(record.seconds),
        record.seed,
        count(parts, "part")
    );
    text += &record.parts.last().map_or(String::new(), |part| format!("; {}", part.version));
    text += "\n";
    for verdict in verdicts {
        text += &format!("{}\n", memory(verdict));
    }
    text
}

/// The memory of a process in one line.
fn memory(verdict: &ProcessVerdict) -> String {
    let ProcessVerdict { name, rss_kib: (first, newest), growth, grew, .. } = verdict;
    let slope = match growth {
        None => "too few rounds for a slope".to_owned(),
        Some(growth) => format!(
            "{:+.2} KiB per round ({CONFIDENCE_PERCENT} %: {:+.2} to {:+.2})",
            growth.kib_per_round, growth.interval.0, growth.interval.1
        ),
    };
    let grew = match grew.is_empty() {
        true => "nothing grew".to_owned(),
        false => format!("GREW: {}", grew.join(", ")),
    };
    format!("{name}: {first} KiB after the first round, {newest} now; {slope}; {grew}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit_that_suits() {
        assert_eq!([5.0, 300.0, 28_800.0].map(time), ["5 s", "5.0 min", "8.0 h"]);
    }

    #[test]
    fn a_command_repeats_a_round_with_its_faults_and_links() {
        let begun = |only, links: &[&str]| {
            let mut record = SoakRecord::new(3, only);
            let links = links.iter().map(|&link| link.to_owned()).collect();
            record.begin(String::new(), String::new(), links, 0);
            again(&record, 79)
        };
        assert_eq!(
            begun("header corrupted", &["udp"]),
            "millstream-lab bench soak --loopback --seed 3 --only 'header corrupted' --round 79"
        );
        let all = begun("", &["udp", "udp on veth", "packet", "xdp"]);
        assert_eq!(all, "sudo millstream-lab bench soak --seed 3 --round 79");
    }
}
