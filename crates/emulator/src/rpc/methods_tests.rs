use super::*;
use crate::DeviceKind;
use crate::time::SampleClock;
use std::net::Ipv4Addr;
use std::sync::mpsc::{Receiver, channel};

const SECOND: u64 = 1_000_000_000;

fn mpm() -> (Mpm, Receiver<DeviceCommand>) {
    mpm_of(DeviceKind::default(), false, 1)
}

/// Returns a device of this kind with so many links, and its commands.
fn mpm_of(kind: DeviceKind, limited: bool, links: u8) -> (Mpm, Receiver<DeviceCommand>) {
    let (orders, inbox) = channel();
    let link = |last| SocketAddrV4::new(Ipv4Addr::new(10, 0, last, 2), 49153);
    let identity = Identity {
        limited,
        scene: None,
        uhd: crate::UhdGeneration::Auto,
        serial: "S1".to_owned(),
        name: "n".to_owned(),
        chdr: (1..=links).map(link).collect(),
        personality: kind.personality(),
        width: Width::W64,
        rates: kind.rates(),
    };
    let keeper = DeviceClock::new(SampleClock::new(0, 0, kind.default_rate_hz(), 1.0));
    (Mpm::new(identity, keeper, Arc::default(), orders), inbox)
}

fn claimed() -> (Mpm, Receiver<DeviceCommand>, Value) {
    claimed_as(DeviceKind::default(), false, 1)
}

/// Returns a claimed device of this kind with so many links, with its commands and the token.
pub(in crate::rpc) fn claimed_as(
    kind: DeviceKind,
    limited: bool,
    links: u8,
) -> (Mpm, Receiver<DeviceCommand>, Value) {
    let (mut mpm, inbox) = mpm_of(kind, limited, links);
    let token = mpm.call("claim", &[Value::from("UHD")], SECOND).unwrap();
    (mpm, inbox, token)
}

/// Returns the calls of a session, by method and arguments without the token.
pub(in crate::rpc) fn with_token<'a>(
    mpm: &'a mut Mpm,
    token: &'a Value,
) -> impl FnMut(&str, &[Value]) -> Answer + 'a {
    move |method, args| mpm.call(method, &[std::slice::from_ref(token), args].concat(), SECOND)
}

fn has_nil(value: &Value) -> bool {
    match value {
        Value::Nil => true,
        Value::Array(items) => items.iter().any(has_nil),
        Value::Map(pairs) => pairs.iter().any(|(key, value)| has_nil(key) || has_nil(value)),
        _ => false,
    }
}

#[test]
fn every_method_of_a_session_is_answered() {
    let (mut mpm, _inbox, token) = claimed();
    let t = || token.clone();
    let text = |text: &str| Value::from(text);
    let calls: Vec<(&str, Vec<Value>)> = vec![
        ("reclaim", vec![t()]),
        ("get_log_buf", vec![t()]),
        ("get_device_info", vec![]),
        ("get_dboard_info", vec![]),
        ("set_device_id", vec![t(), Value::from(1)]),
        ("get_num_timekeepers", vec![t()]),
        ("get_mb_sensors", vec![t()]),
        ("get_mb_sensor", vec![t(), text("ref_locked")]),
        ("pop_host_tasks", vec![t(), text("mpm_reboot")]),
        ("get_chdr_xport_adapters", vec![t()]),
        ("synchronize", vec![t(), Value::Map(vec![]), Value::from(false)]),
        ("aggregate_sync_data", vec![t(), Value::Array(vec![Value::Map(vec![])])]),
        ("get_gpio_banks", vec![t()]),
        ("get_gpio_srcs", vec![t(), text("FP0")]),
        ("get_gpio_src", vec![t(), text("FP0")]),
        ("set_gpio_src", vec![t(), text("FP0"), Value::Array(vec![text("PS"); 8])]),
        ("get_mb_eeprom", vec![t()]),
        ("get_db_eeprom", vec![t(), Value::from(0)]),
        ("supports_feature", vec![t(), text("gpio_power")]),
        ("get_mpm_compat_num", vec![]),
        ("get_init_status", vec![t()]),
        ("init", vec![t(), Value::Map(vec![])]),
        ("get_clocks", vec![t()]),
        ("get_chdr_link_types", vec![t()]),
        ("get_chdr_link_options", vec![t(), text("udp")]),
        ("get_chdr_width", vec![]),
        ("get_proto_ver", vec![]),
        ("list_updateable_components", vec![]),
        ("set_tick_period", vec![t(), Value::from(0), Value::from(62)]),
        ("set_channel_mode", vec![t(), text("x")]),
        ("get_timekeeper_time", vec![t(), Value::from(0), Value::from(false)]),
        ("set_timekeeper_time", vec![t(), Value::from(0), Value::from(0), Value::from(false)]),
        ("get_clock_source", vec![t()]),
        ("set_clock_source", vec![t(), text("internal")]),
        ("get_time_source", vec![t()]),
        ("set_time_source", vec![t(), text("external")]),
        ("get_clock_sources", vec![t()]),
        ("get_time_sources", vec![t()]),
        ("get_sync_sources", vec![t()]),
        ("set_sync_source", vec![t(), Value::Map(vec![])]),
        ("get_last_error", vec![]),
        ("db_0_get_master_clock_rate", vec![t()]),
        ("db_0_get_sensors", vec![t(), text("RX")]),
        ("db_0_get_sensor", vec![t(), text("RX"), text("lo_locked"), Value::from(0)]),
        ("db_0_get_sensor", vec![t(), text("RX"), text("ad9361_temperature"), Value::from(0)]),
        ("db_0_set_gain", vec![t(), text("RX1"), Value::from(10.0)]),
        ("db_0_catalina_tune", vec![t(), text("RX"), Value::from(1e9)]),
        ("db_0_set_bw_filter", vec![t(), text("RX"), Value::from(1e6)]),
        ("db_0_set_dc_offset_auto", vec![t(), text("RX"), Value::from(true)]),
        ("db_0_set_iq_balance_auto", vec![t(), text("RX"), Value::from(true)]),
        ("db_0_set_agc", vec![t(), text("RX1"), Value::from(false)]),
        ("db_0_set_active_chains", vec![t()]),
        ("db_0_set_timing_mode", vec![t(), text("1R1T")]),
        ("db_0_data_port_loopback", vec![t(), Value::from(false)]),
        ("db_0_set_catalina_clock_rate", vec![t(), Value::from(5e6)]),
        ("unclaim", vec![t()]),
    ];
    for (method, args) in calls {
        let answer = mpm.call(method, &args, SECOND);
        let answer = answer.unwrap_or_else(|error| panic!("{method}: {error}"));
        // A bare nil is an answer; nil inside a map or list makes the UHD client abort.
        assert!(answer.is_nil() || !has_nil(&answer), "{method}: {answer}");
    }
}

#[test]
fn a_token_is_needed_and_may_be_str_or_bin() {
    let (mut mpm, _inbox, token) = claimed();
    assert!(mpm.call("get_clocks", &[], SECOND).is_err());
    assert!(mpm.call("get_clocks", &[Value::from("wrong")], SECOND).is_err());
    let binary = Value::Binary(token.as_str().unwrap().as_bytes().to_vec());
    assert!(mpm.call("get_clocks", &[binary], SECOND).is_ok());
}

#[test]
fn a_claim_resets_the_rate_which_equals_radio_clk_and_the_boards_and_leaves_the_logic_alone() {
    let (mut mpm, inbox, token) = claimed();
    mpm.call("db_0_set_catalina_clock_rate", &[token.clone(), Value::from(5e6)], SECOND).unwrap();
    assert!(
        mpm.call("get_clocks", std::slice::from_ref(&token), SECOND)
            .unwrap()
            .to_string()
            .contains("5000000")
    );
    mpm.call("unclaim", &[token], SECOND).unwrap();
    let token = mpm.call("claim", &[Value::from("next")], SECOND).unwrap();
    let rate =
        mpm.call("db_0_get_master_clock_rate", std::slice::from_ref(&token), SECOND).unwrap();
    assert_eq!(rate.as_f64(), Some(16e6));
    assert!(mpm.call("get_clocks", &[token], SECOND).unwrap().to_string().contains("16000000.0"));
    let orders: Vec<_> = inbox.try_iter().collect();
    let [.., DeviceCommand::Time(keeper), DeviceCommand::FrontEnd(0, _)] = orders[..] else {
        panic!("{orders:?}");
    };
    assert_eq!(keeper.clock().rate_hz(), 16e6);
    let of_boards = |order: &&DeviceCommand| {
        matches!(order, DeviceCommand::Time(_) | DeviceCommand::FrontEnd(..))
    };
    assert_eq!(orders.iter().filter(of_boards).count(), orders.len(), "{orders:?}");
}

#[test]
fn a_master_clock_rate_among_the_device_arguments_holds_from_the_start() {
    let (mut mpm, inbox, token) = claimed();
    let init = |mpm: &mut Mpm, rate: &str| {
        let args = Value::Map(vec![(Value::from("master_clock_rate"), Value::from(rate))]);
        mpm.call("init", &[token.clone(), args], SECOND)
    };
    init(&mut mpm, "1e6").unwrap();
    let clocks = mpm.call("get_clocks", std::slice::from_ref(&token), SECOND).unwrap();
    assert!(clocks.to_string().contains("1000000.0"));
    let last = inbox.try_iter().last().unwrap();
    assert!(matches!(last, DeviceCommand::Time(keeper) if keeper.clock().rate_hz() == 1e6));
    assert!(init(&mut mpm, "fast").unwrap_err().contains("master_clock_rate=fast is not a rate"));
    init(&mut mpm, "1e12").unwrap();
    let taken = inbox.try_iter().last().unwrap();
    assert!(matches!(taken, DeviceCommand::Time(keeper) if keeper.clock().rate_hz() == 61.44e6));
}

/// An E320 takes 0.22 to 61.44 MS/s, and the nearest of these for other rates (facts of its
/// AD9361).
#[test]
fn a_rate_that_the_hardware_does_not_have_becomes_the_nearest_and_is_counted() {
    let (mut mpm, _inbox, token) = claimed();
    let mut set = |rate_hz: f64| {
        let args = [token.clone(), Value::from(rate_hz)];
        let taken = mpm.call("db_0_set_catalina_clock_rate", &args, SECOND).unwrap();
        (taken.as_f64().unwrap(), mpm.rate_coercions())
    };
    assert_eq!(set(61.44e6), (61.44e6, 0));
    assert_eq!(set(100e6), (61.44e6, 1));
    assert_eq!(set(100e3), (220e3, 2));
    assert_eq!(set(1e6), (1e6, 2));
}

/// UHD's example `gpio` takes the first bank, and crashes without one.
#[test]
fn the_front_panel_is_a_bank_of_pins_whose_sources_are_remembered() {
    let (mut mpm, _inbox, token) = claimed();
    let mut call = with_token(&mut mpm, &token);
    let texts = |value: Value| -> Vec<String> {
        let items = value.as_array().unwrap().iter();
        items.map(|item| item.as_str().unwrap().to_owned()).collect()
    };
    let bank = Value::from("FP0");
    assert_eq!(texts(call("get_gpio_banks", &[]).unwrap()), ["FP0"]);
    let get = std::slice::from_ref(&bank);
    assert_eq!(texts(call("get_gpio_src", get).unwrap()), ["RFA"; 8]);
    let mut wanted = vec![Value::from("RFB"); 7];
    let short = [bank.clone(), Value::Array(wanted.clone())];
    assert!(call("set_gpio_src", &short).unwrap_err().contains("a list of 8 sources"));
    wanted.push(Value::from("PS"));
    call("set_gpio_src", &[bank.clone(), Value::Array(wanted)]).unwrap();
    assert_eq!(texts(call("get_gpio_src", get).unwrap())[6..], ["RFB", "PS"]);
    assert!(call("get_gpio_src", &[Value::from("X")]).unwrap_err().contains("there is FP0"));
}

#[test]
fn a_pair_of_sources_is_set_at_once() {
    let (mut mpm, _inbox, token) = claimed();
    let mut call = with_token(&mut mpm, &token);
    let pairs = call("get_sync_sources", &[]).unwrap();
    for pair in pairs.as_array().unwrap() {
        call("set_sync_source", std::slice::from_ref(pair)).unwrap();
        for (key, method) in
            [("clock_source", "get_clock_source"), ("time_source", "get_time_source")]
        {
            let set = pair.as_map().unwrap().iter().find(|(name, _)| name.as_str() == Some(key));
            assert_eq!(call(method, &[]).unwrap(), set.unwrap().1);
        }
    }
    let moon = Value::Map(vec![(Value::from("clock_source"), Value::from("moon"))]);
    assert!(call("set_sync_source", &[moon]).unwrap_err().contains("source moon is neither"));
}

#[test]
fn a_silent_session_loses_its_claim() {
    let (mut mpm, inbox, token) = claimed();
    assert!(mpm.call("claim", &[Value::from("b")], 6 * SECOND).unwrap_err().contains("by UHD"));
    assert!(!mpm.expire_claim(6 * SECOND));
    assert!(mpm.expire_claim(6 * SECOND + 1));
    assert!(mpm.call("reclaim", &[token], 6 * SECOND + 1).is_err());
    assert_eq!(inbox.try_iter().count(), 2, "reset at the claim and at its end");
}

#[test]
fn time_is_set_now_and_at_pps() {
    let (mut mpm, _inbox, token) = claimed();
    let get = |mpm: &mut Mpm, pps: bool, now| {
        let args = [token.clone(), Value::from(0), Value::from(pps)];
        mpm.call("get_timekeeper_time", &args, now).unwrap().as_u64().unwrap()
    };
    let set = |mpm: &mut Mpm, ticks: u64, pps: bool, now| {
        let args = [token.clone(), Value::from(0), Value::from(ticks), Value::from(pps)];
        mpm.call("set_timekeeper_time", &args, now).unwrap();
    };
    set(&mut mpm, 0, false, 3 * SECOND);
    assert_eq!(get(&mut mpm, false, 4 * SECOND), 16_000_000);
    set(&mut mpm, 99, true, 4 * SECOND + 5);
    assert_eq!(get(&mut mpm, true, 4 * SECOND + 6), 16_000_000);
    assert_eq!(get(&mut mpm, true, 5 * SECOND), 99);
}

#[test]
fn bad_calls_get_an_error_that_get_last_error_repeats() {
    let (mut mpm, _inbox, token) = claimed();
    for (method, args) in [
        ("no_such_method", vec![]),
        ("db_0_no_such_method", vec![]),
        ("db_0_get_sensor", vec![Value::from("RX"), Value::from("rain"), Value::from(0)]),
        ("set_clock_source_out", vec![Value::from(true)]),
        ("set_device_id", vec![Value::from(70_000)]),
        ("set_device_id", vec![]),
        ("db_0_set_catalina_clock_rate", vec![Value::from(f64::NAN)]),
        ("db_0_set_catalina_clock_rate", vec![Value::from("fast")]),
        ("set_clock_source", vec![Value::from("moon")]),
        ("set_timekeeper_time", vec![Value::from(0), Value::from(-1), Value::from(false)]),
    ] {
        let args = [vec![token.clone()], args].concat();
        let error = mpm.call(method, &args, SECOND).unwrap_err();
        assert_eq!(mpm.call("get_last_error", &[], SECOND).unwrap().as_str(), Some(&error[..]));
    }
}

/// UHD 4.8 reads every sensor that is listed, and opens no radio without one that it knows.
#[test]
fn every_sensor_that_is_listed_can_be_read() {
    let (mut mpm, _inbox, token) = claimed();
    let mut session = with_token(&mut mpm, &token);
    let mut call = |method, args: &[Value]| session(method, args).unwrap();
    let boards = [Value::from("RX"), Value::from("TX")];
    let of_board =
        boards.each_ref().map(|side| call("db_0_get_sensors", std::slice::from_ref(side)));
    let listed = boards.iter().zip(&of_board).flat_map(|(side, names)| {
        let arguments = |name: &Value| vec![side.clone(), name.clone(), Value::from(0)];
        names.as_array().unwrap().iter().map(arguments).map(|args| ("db_0_get_sensor", args))
    });
    let mut listed: Vec<_> = listed.collect();
    let names = call("get_mb_sensors", &[]);
    assert!(names.to_string().contains("ref_locked"));
    let names = names.as_array().unwrap().iter();
    listed.extend(names.map(|name| ("get_mb_sensor", vec![name.clone()])));
    for (method, args) in listed {
        let sensor = call(method, &args);
        let keys: Vec<_> = sensor.as_map().unwrap().iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["name", "type", "unit", "value"].map(Some), "{method} {args:?}");
    }
    let error = session("get_mb_sensor", &[Value::from("rain")]).unwrap_err();
    assert!(error.contains("there is no sensor rain; there are ref_locked"), "{error}");
}

/// The image speaks the language of the session's caller, and that of the next one afterwards.
#[test]
fn the_device_is_told_what_the_caller_expects_and_forgets_it_with_the_session() {
    let (mut mpm, inbox) = mpm();
    let spoken = || {
        let last = |found, order| match order {
            DeviceCommand::Speak(generation) => Some(generation.mpm_compat),
            _ => found,
        };
        inbox.try_iter().fold(None, last)
    };
    let version = |mpm: &mut Mpm| mpm.call("get_mpm_compat_num", &[], SECOND).unwrap().to_string();
    assert_eq!((version(&mut mpm).as_str(), spoken()), ("[5, 3]", None), "without a session");
    let token = mpm.call("claim", &[Value::from("UHD")], SECOND).unwrap();
    for feature in ["", "ref_clk_calibration", "gpio_power"] {
        let (method, arg) = match feature {
            "" => ("get_num_timekeepers", vec![]),
            name => ("supports_feature", vec![Value::from(name)]),
        };
        mpm.call(method, &[vec![token.clone()], arg].concat(), SECOND).unwrap();
    }
    assert_eq!((version(&mut mpm).as_str(), spoken()), ("[4, 2]", Some([4, 2])));
    assert!(mpm.call("get_device_info", &[], SECOND).unwrap().to_string().contains("\"4.2\""));
    mpm.call("unclaim", &[token], SECOND).unwrap();
    assert_eq!((version(&mut mpm).as_str(), spoken()), ("[5, 3]", None), "the image stays");
    mpm.call("claim", &[Value::from("another")], SECOND).unwrap();
    assert_eq!((version(&mut mpm).as_str(), spoken()), ("[5, 3]", Some([5, 3])));
}
