//! The methods of daughterboards, as UHD calls them for each device.

use super::super::methods::tests::{claimed_as, with_token};
use super::*;
use crate::DeviceKind;
use std::sync::mpsc::Receiver;

/// A claimed device with two links, and its token.
fn claimed(kind: DeviceKind) -> (Mpm, Receiver<DeviceCommand>, Value) {
    let (mpm, inbox, token) = claimed_as(kind, true, 2);
    inbox.try_iter().for_each(drop);
    (mpm, inbox, token)
}

#[test]
fn each_board_of_an_n310_is_tuned_alone_and_within_its_limits() {
    let (mut mpm, inbox, token) = claimed(DeviceKind::N310);
    let mut call = with_token(&mut mpm, &token);
    let rx1 = || Value::from("RX1");
    let tuned = call("db_1_set_freq", &[rx1(), Value::from(1e9), Value::from(false)]).unwrap();
    assert_eq!(tuned.as_f64(), Some(1e9));
    assert_eq!(call("db_1_get_freq", &[Value::from("RX2")]).unwrap().as_f64(), Some(1e9));
    assert_eq!(call("db_0_get_freq", &[rx1()]).unwrap().as_f64(), Some(2.5e9));
    assert_eq!(call("db_1_set_gain", &[rx1(), Value::from(99)]).unwrap().as_f64(), Some(30.0));
    assert_eq!(call("db_1_get_gain", &[rx1()]).unwrap().as_f64(), Some(30.0));
    assert_eq!(call("db_0_get_gain", &[rx1()]).unwrap().as_f64(), Some(0.0));
    let boards = inbox.try_iter().map(|order| match order {
        DeviceCommand::FrontEnd(board, front_end) => (board, front_end.rx.lo_hz),
        other => panic!("{other:?}"),
    });
    assert_eq!(boards.collect::<Vec<_>>(), [(1, 1e9), (1, 1e9)]);
    assert!(call("db_2_get_freq", &[rx1()]).is_err(), "there are two boards");
    assert!(call("db_0_set_lo_source", &[rx1(), Value::from("moon")]).is_err());
}

#[test]
fn every_method_that_uhd_calls_for_these_devices_is_answered() {
    let rx1 = || Value::from("RX1");
    type Call = (&'static str, Vec<Value>);
    let cases: [(DeviceKind, &[Call]); 4] = [
        (
            DeviceKind::N310,
            &[
                ("db_1_get_master_clock_rate", vec![]),
                ("db_1_get_sensors", vec![Value::from("RX")]),
                ("db_0_get_ad9371_lo_lock", vec![rx1()]),
                ("db_0_get_lowband_lo_lock", vec![rx1()]),
                ("db_0_get_lo_source", vec![rx1()]),
                ("db_0_set_lo_source", vec![rx1(), Value::from("internal")]),
                ("db_0_set_bandwidth", vec![rx1(), Value::from(1e8)]),
                ("db_0_get_bandwidth", vec![rx1()]),
                ("db_0_get_fir", vec![rx1()]),
            ],
        ),
        (
            DeviceKind::N320,
            &[
                ("db_0_is_lo_dist_present", vec![]),
                ("db_1_get_master_clock_rate", vec![]),
                ("db_1_enable_rx_lowband_lo", vec![Value::from(true)]),
                ("db_1_enable_tx_lowband_lo", vec![Value::from(true)]),
                ("db_0_set_master_clock_rate", vec![Value::from(200e6)]),
            ],
        ),
        (
            DeviceKind::X410,
            &[
                ("get_master_clock_rate", vec![]),
                ("get_gpio_banks", vec![]),
                ("is_db_gpio_ifc_present", vec![Value::from(0)]),
                ("db_1_get_dboard_prc_rate", vec![]),
                ("db_1_get_dboard_sample_rate", vec![]),
                ("db_1_enable_iq_swap", vec![Value::from(true)]),
                ("rfdc_get_nco_freq", vec![]),
            ],
        ),
        (
            DeviceKind::E310,
            &[
                ("db_0_catalina_tune", vec![Value::from("RX2"), Value::from(1e9)]),
                ("db_0_set_gain", vec![Value::from("RX2"), Value::from(10)]),
                ("db_0_set_catalina_clock_rate", vec![Value::from(5e6)]),
            ],
        ),
    ];
    for (kind, calls) in cases {
        let (mut mpm, _inbox, token) = claimed(kind);
        for (method, args) in calls {
            let answer = with_token(&mut mpm, &token)(method, args);
            assert!(answer.is_ok(), "{kind:?} {method}: {answer:?}");
        }
        let boards = mpm.call("get_dboard_info", &[], 0).unwrap();
        assert_eq!(boards.as_array().unwrap().len(), kind.personality().radios);
    }
}

#[test]
fn an_x410_returns_the_frequency_of_its_converters_and_bytes_of_its_boards() {
    let (mut mpm, _inbox, token) = claimed(DeviceKind::X410);
    let mut call = with_token(&mut mpm, &token);
    let args = [Value::from("rx"), Value::from(0), Value::from(1), Value::from(1.5e9)];
    assert_eq!(call("rfdc_set_nco_freq", &args).unwrap().as_f64(), Some(1.5e9));
    let board = call("get_db_eeprom", &[Value::from(0)]).unwrap();
    // UHD 4.3 takes no texts here.
    assert!(board.as_map().unwrap().iter().all(|(_, value)| value.is_bin()));
    assert_eq!(call("get_gpio_banks", &[]).unwrap(), none());
    // UHD 4.6 and later ones find the clocks of the blocks by the numbers in client zero.
    let clocks = call("get_clocks", &[]).unwrap();
    for name in ["radio_clk", "1", "2", "3", "4", "5"] {
        assert!(clocks.to_string().contains(&format!("\"{name}\"")), "{name}: {clocks}");
    }
}

#[test]
fn a_device_announces_both_links_and_takes_the_rates_of_its_hardware() {
    let (mut mpm, _inbox, token) = claimed(DeviceKind::N320);
    let links = mpm.call("get_chdr_link_options", &[token.clone(), Value::from("udp")], 0).unwrap();
    let addresses: Vec<_> = links
        .as_array()
        .unwrap()
        .iter()
        .map(|link| link.as_map().unwrap()[0].1.as_str().unwrap().to_owned())
        .collect();
    assert_eq!(addresses, ["10.0.1.2", "10.0.2.2"]);
    let args = Value::Map(vec![(Value::from("master_clock_rate"), Value::from("249e6"))]);
    mpm.call("init", &[token.clone(), args], 0).unwrap();
    let rate = mpm.call("db_1_get_master_clock_rate", &[token], 0).unwrap();
    assert_eq!((rate.as_f64(), mpm.rate_coercions()), (Some(250e6), 1));
}
