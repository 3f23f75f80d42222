//! Values that a radio does not have: refused with what it has, or replaced in one line; never
//! silently.

use crate::common::{Radio, millstream};

#[test]
fn every_setting_that_a_radio_does_not_have_is_refused_or_told_in_every_verb() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.sc16"), [1; 4000]).unwrap();
    let radio = Radio::start(folder.path(), &["--device", "e320"]);
    let args = radio.args();
    let verbs: [(&str, &[&str], &str); 3] = [
        ("rx", &["rx", "--nsamps", "1000", "--out", "y.sc16"], "0 to 76 dB"),
        ("tx", &["tx", "--in", "x.sc16"], "0 to 89.75 dB"),
        ("relay", &["relay", "--nsamps", "1000", "--to", "127.0.0.1:9"], "0 to 76 dB"),
    ];
    for (name, verb, gains) in verbs {
        let run = |more: &[&str]| {
            let rate: &[&str] = if more[0] == "--rate" { &[] } else { &["--rate", "1e6"] };
            millstream(folder.path(), &[verb, &["--args", &args], rate, more].concat())
        };
        for (option, value, status, part) in [
            ("--gain", "999", 1, gains),
            ("--gain", "-3", 1, gains),
            ("--gain", "nan", 2, "give a number of decibels"),
            ("--gain", "loud", 2, "give a number of decibels"),
            ("--rate", "100e6", 1, "is 61440000 Hz"),
            ("--rate", "100", 1, "the radio has no sample rate of 100 Hz: the nearest"),
            ("--rate", "nan", 2, "give a number above 0"),
            ("--rate", "fast", 2, "give a number above 0"),
            ("--freq", "1e3", 1, "is not possible: it must be"),
            ("--freq", "60G", 1, "is not possible: it must be"),
            ("--freq", "nan", 2, "give a number above 0"),
            ("--bandwidth", "1", 1, "is not possible: it must be"),
            ("--bandwidth", "1G", 1, "is not possible: it must be"),
            ("--channel", "9", 1, "there is no "),
            ("--channel", "A", 2, "give a whole number from 0"),
        ] {
            let outcome = run(&[option, value]);
            assert!(outcome.stderr.contains(part), "{name} {option} {value}: {outcome:?}");
            outcome.fails(status, part);
        }
        let outcome = run(&["--gain", "10.4"]);
        let told = outcome.stderr.contains("dB: the radio does not have 10.4 dB");
        assert!(told || name == "tx", "{name}: {outcome:?}");
    }
    radio.stop();
}
