//! Audits against a device that counts, with every one of their packets lost in turn.

use super::*;

const FLOW: u64 = 416;
const SAMPLES: u64 = 100;
const COMMAND: u64 = 24;

/// Both sides of a stream.
struct Stream {
    audits: Audits,
    sent: Totals,
    counted: Totals,
    status_seq: u16,
}

impl Stream {
    fn new() -> Self {
        let (sent, counted) = Default::default();
        Self { audits: Audits::new(COMMAND, u16::MAX), sent, counted, status_seq: 0 }
    }

    /// Packets leave, of which `lost` do not arrive; then the device reports.
    fn data(&mut self, packets: u64, lost: u64) -> Option<Finding> {
        self.audits.push(packets, FLOW, SAMPLES);
        self.sent = self.sent.plus(packets, FLOW);
        self.counted = self.counted.plus(packets - lost, FLOW);
        self.status(true)
    }

    fn status(&mut self, arrives: bool) -> Option<Finding> {
        let seq = self.status_seq;
        self.status_seq += 1;
        if arrives { self.audits.take(seq, self.counted) } else { None }
    }

    /// An audit; which of its commands arrive, and which of the answers.
    fn audit(&mut self, commands: [bool; 3], answers: [bool; 3]) -> Option<Finding> {
        let mut finding = None;
        for step in 0..3 {
            self.audits.push(1, COMMAND, 0);
            if step == 2 {
                self.audits.resync(self.sent);
            }
            if commands[step] {
                if step == 2 {
                    self.counted = self.sent;
                }
                self.counted = self.counted.plus(1, COMMAND);
                finding = self.status(answers[step]).or(finding);
            }
            self.sent = self.sent.plus(1, COMMAND);
        }
        finding
    }
}

fn samples(finding: &Finding) -> (u64, u64) {
    (finding.lost.samples_min, finding.lost.samples_max)
}

const ALL: [bool; 3] = [true; 3];

#[test]
fn without_loss_an_audit_finds_nothing() {
    let mut stream = Stream::new();
    assert_eq!(stream.data(10, 0), None);
    let finding = stream.audit(ALL, ALL).unwrap();
    assert_eq!((finding.packets, samples(&finding), finding.certain), (0, (0, 0), true));
}

#[test]
fn what_is_lost_is_found_to_the_sample() {
    let mut stream = Stream::new();
    stream.data(10, 3);
    let finding = stream.audit(ALL, ALL).unwrap();
    assert_eq!((finding.packets, samples(&finding), finding.certain), (3, (300, 300), true));
    // The count is right again.
    stream.data(10, 0);
    assert_eq!(stream.audit(ALL, ALL).unwrap().packets, 0);
    stream.data(20, 20);
    assert_eq!(samples(&stream.audit(ALL, ALL).unwrap()), (2000, 2000));
}

#[test]
fn any_single_loss_within_an_audit_leaves_the_sum_right() {
    for lost in [0, 3] {
        for index in 0..6 {
            let mut stream = Stream::new();
            stream.data(10, lost);
            let (mut commands, mut answers) = (ALL, ALL);
            if index < 3 {
                commands[index] = false;
            } else {
                answers[index - 3] = false;
            }
            let mut sum = 0;
            let mut count = |finding: Option<Finding>| {
                let found = finding.map_or(0, |finding| finding.lost.samples_max);
                sum += found;
            };
            count(stream.audit(commands, answers));
            count(stream.data(10, 0));
            count(stream.data(10, 0));
            count(stream.audit(ALL, ALL));
            assert_eq!(sum, lost * SAMPLES, "packet {index}, {lost} lost");
            assert!(!stream.audits.is_open());
        }
    }
}

#[test]
fn what_cannot_be_proven_is_said_to_be_uncertain() {
    let mut stream = Stream::new();
    stream.data(10, 3);
    // Both answers that count are lost.
    let finding = stream.audit(ALL, [false, false, true]).unwrap();
    assert!(!finding.certain);
}

#[test]
fn old_statuses_are_known_by_their_number() {
    let mut stream = Stream::new();
    stream.data(1, 0);
    stream.data(1, 0);
    assert!(
        stream.audits.is_stale(1) && stream.audits.is_stale(0) && stream.audits.is_stale(65000)
    );
    assert!(!stream.audits.is_stale(2));
}

#[test]
fn audits_without_answer_do_not_pile_up() {
    let mut stream = Stream::new();
    for _ in 0..2 * OPEN_MAX {
        stream.data(5, 1);
        stream.audit([false; 3], ALL);
    }
    assert_eq!(stream.audits.open.capacity(), OPEN_MAX);
    let finding = stream.audit(ALL, ALL).unwrap();
    assert_eq!(samples(&finding), (12_800, 12_800));
}
