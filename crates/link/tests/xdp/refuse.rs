//! Impossible requests return one error that says what to do.

use millstream_testkit::netns::{PairOptions, VethPair};

use crate::bench::try_open;

#[track_caller]
fn refused(pair: &VethPair, options: &str, wanted: &[&str]) {
    let error = try_open(&pair.right, options).err().expect("it is refused").to_string();
    for part in wanted {
        assert!(error.contains(part), "{options}: no \"{part}\" in: {error}");
    }
}

#[test]
fn a_mode_that_the_driver_lacks_is_refused_by_name() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    let advice = [
        "cannot open xdp on veth0 (failed step: bind to queue 0)",
        "no zero-copy",
        "use mode=native",
    ];
    refused(&pair, "mode=zero-copy", &advice);
    // Nothing is left behind.
    assert!(!pair.right.sh("ip link show veth0").contains("xdp"));
    try_open(&pair.right, "mode=native").unwrap();
}

#[test]
fn a_second_link_is_told_who_is_there() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    for mode in ["native", "generic"] {
        let first = try_open(&pair.right, &format!("mode={mode}")).unwrap();
        for again in ["native", "generic", "auto"] {
            let name = std::process::id().to_string();
            let advice = ["attach the program", "millstream is there already", &name];
            refused(&pair, &format!("mode={again}"), &advice);
        }
        drop(first);
    }
    try_open(&pair.right, "mode=auto").unwrap();
}

#[test]
fn queues_and_interfaces_that_do_not_exist_are_named() {
    let Some(pair) = VethPair::new(PairOptions { queues: 2, ..PairOptions::default() }) else {
        return;
    };
    refused(&pair, "queues=0-3", &["veth0 has 2 receive queues, 0 to 1", "ethtool -l veth0"]);
    pair.right.sh("ip link set veth0 name other0");
    refused(&pair, "mode=auto", &["no network interface \"veth0\"", "there are: lo, other0"]);
}

#[test]
fn an_interface_that_is_down_is_opened_or_says_so() {
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    pair.right.sh("ip link set veth0 down");
    match try_open(&pair.right, "mode=auto") {
        Ok(link) => {
            use millstream_link::frame::FrameLink;
            assert!(link.info().detail.contains("interface down"), "{}", link.info().detail);
        }
        Err(error) => assert!(error.to_string().contains("ip link set veth0 up"), "{error}"),
    }
}
