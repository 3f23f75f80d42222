//! Numbers of the command line, checked before a job starts.

use anyhow::Context;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use millstream_cpu::CpuSet;
use millstream_flow::blocks::SampleFormat;
use millstream_flow::registry::typed_number;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::{Bound, RangeBounds, RangeInclusive};

/// The units of a time.
const TIME_UNITS: [(&str, f64); 8] = [
    ("", 1.0),
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("min", 60.0),
    ("h", 3600.0),
];

/// The longest time, seconds: thirty years. A clock can be set to that.
const SECONDS_MAX: f64 = 1e9;

/// One of several values, by name, each with its help or an empty one.
pub fn one_of<T: Copy + Send + Sync>(
    choices: &'static [(&'static str, &'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let names = choices.iter().map(|(name, help, _)| match *help {
        "" => PossibleValue::new(*name),
        help => PossibleValue::new(*name).help(help),
    });
    let named = |name: &str| choices.iter().find(|choice| choice.0 == name).map(|choice| choice.2);
    PossibleValuesParser::new(names).try_map(move |name| named(&name).ok_or("no such value"))
}

/// The name of a value among them.
pub fn name_of<T: PartialEq>(
    choices: &[(&'static str, &'static str, T)],
    value: &T,
) -> &'static str {
    choices.iter().find(|choice| choice.2 == *value).map_or("", |choice| choice.0)
}

/// Checks the value of an option, a number of the unit; `form` tells the range. A unit may make a
/// limit a little smaller: 20 times 1e-6 is below 20e-6.
pub fn within(
    option: &str,
    value: (f64, &str),
    range: RangeInclusive<f64>,
    form: &str,
) -> anyhow::Result<()> {
    let (value, unit) = value;
    let (least, most) = (range.start() * (1.0 - 1e-9), range.end() * (1.0 + 1e-9));
    anyhow::ensure!((least..=most).contains(&value), "{option} is {value}{unit}: give {form}");
    Ok(())
}

/// The CPUs that this process may use.
pub fn allowed_cpus() -> anyhow::Result<CpuSet> {
    millstream_cpu::thread::allowed_cpus().context("cannot read the CPUs of this machine")
}

/// A positive finite number.
pub fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(makes_sense);
    number.ok_or_else(|| "give a number above 0".to_owned())
}

/// A rate per second, as of samples, bits or packets: 6.25e6 or 6.25M.
pub fn rate(text: &str) -> Result<f64, String> {
    typed_number(text)
        .filter(makes_sense)
        .ok_or_else(|| "give a number above 0, such as 6.25e6 or 6.25M (k, M or G)".to_owned())
}

/// A UDP port, or a range of them: 49153, 49153-49400.
pub fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0);
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        _ => Err(format!(
            "{text} is not a port and not a range of ports: write for example 49153 or \
             49153-49400"
        )),
    }
}

/// A whole number in a range: 4000000, 4e6 or 4M. The type may limit it further.
pub fn whole<T: TryFrom<u64>>(
    range: impl RangeBounds<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    let least = match range.start_bound() {
        Bound::Included(least) => *least,
        Bound::Excluded(below) => below + 1,
        Bound::Unbounded => 0,
    };
    let most = match range.end_bound() {
        Bound::Included(most) => *most,
        Bound::Excluded(above) => above - 1,
        Bound::Unbounded => u64::MAX,
    };
    let of_type = (0..=64).rev().map(|bits| u64::MAX.checked_shr(64 - bits).unwrap_or(0));
    let most = of_type.map(|all| all.min(most)).find(|most| T::try_from(*most).is_ok());
    let most = most.unwrap_or(0);
    move |text| {
        let number = digits(text).as_deref().unwrap_or(text).parse::<u64>().ok();
        let number = number.filter(|number| (least..=most).contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
            let units = if most > 999 { "; 4000, 4e3 and 4k are the same" } else { "" };
            format!("give a whole number from {least} to {most}{units}")
        })
    }
}

/// An IPv4 address.
pub fn ipv4(text: &str) -> Result<Ipv4Addr, String> {
    text.parse().map_err(|_| "give an IPv4 address, such as 192.168.10.2".to_owned())
}

/// An IPv4 address and a UDP port.
pub fn destination(text: &str) -> Result<SocketAddrV4, String> {
    let found = text.parse().ok().filter(|to: &SocketAddrV4| to.port() != 0);
    found.ok_or_else(|| "give an IPv4 address and a port, such as 192.168.10.9:5000".to_owned())
}

/// A finite number of any sign, without a unit.
pub fn finite(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "give a number, such as 20 or -2.5".to_owned())
}

/// The digits of a whole number that has a unit or an exponent.
fn digits(text: &str) -> Option<String> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let whole = |number: &f64| number.fract() == 0.0 && number.abs() < 2f64.powi(53);
    number(text).filter(whole).map(|number| format!("{number:.0}"))
}

/// A number of any sign, such as 1e6, 1M or -250k.
pub fn number(text: &str) -> Option<f64> {
    typed_number(text).filter(|number| number.is_finite())
}

/// A frequency, which may be negative: -2000 or -2k.
pub fn frequency(text: &str) -> Result<f64, String> {
    number(text).ok_or_else(|| "give a number, such as -2e3 or -2k (k, M or G)".to_owned())
}

/// A ratio in decibels, of any sign.
pub fn decibels(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "give a number of decibels, such as 30 or -3.5".to_owned())
}

/// A time in seconds: 0.005, 5ms, 1min 30s.
pub fn seconds(text: &str) -> Result<f64, String> {
    let with_unit = |(unit, factor): &(&str, f64)| {
        let number = text.strip_suffix(unit)?.parse::<f64>().ok()? * factor;
        Some(number).filter(makes_sense)
    };
    // M would be a month there, but a million in every other number.
    let humane = |text: &str| humantime::parse_duration(text).ok().filter(|_| !text.contains('M'));
    let compound = || humane(text).map(|time| time.as_secs_f64()).filter(makes_sense);
    let seconds = TIME_UNITS.iter().find_map(with_unit).or_else(compound).ok_or_else(|| {
        "give a number of seconds above 0, such as 0.005 or 5ms (ns, us, ms, s, min or h)"
            .to_owned()
    })?;
    let told = || "give at most 1e9 seconds, which is thirty years".to_owned();
    (seconds <= SECONDS_MAX).then_some(seconds).ok_or_else(told)
}

/// A moment of a device: a number of its ticks; with a unit (2s) a time on its clock; with + (+2s)
/// a time from now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DeviceMoment {
    /// Ticks of its clock.
    Ticks(u64),
    /// Seconds on its clock.
    Seconds(f64),
    /// Seconds from now.
    FromNow(f64),
}

impl DeviceMoment {
    /// Its ticks, on a clock that shows `now_ticks` and has `ticks_hz`.
    pub fn ticks(self, now_ticks: u64, ticks_hz: f64) -> u64 {
        let ticks = |seconds: f64| (seconds * ticks_hz).round() as u64;
        match self {
            Self::Ticks(at) => at,
            Self::Seconds(at) => ticks(at),
            Self::FromNow(lead) => now_ticks.saturating_add(ticks(lead)),
        }
    }
}

/// A moment of a device.
pub fn device_moment(text: &str) -> Result<DeviceMoment, String> {
    let form = "give a time on the device's clock with its unit, such as 12.5s, or a time from now \
                with +, such as +2s, or a whole number of the device's ticks";
    if let Some(lead) = text.strip_prefix('+') {
        return seconds(lead).map(DeviceMoment::FromNow).map_err(|_| form.to_owned());
    }
    if let Ok(ticks) = whole(..)(text) {
        return Ok(DeviceMoment::Ticks(ticks));
    }
    // A number without a unit would be a fraction of a tick.
    let has_unit = text.ends_with(|last: char| last.is_alphabetic());
    let time = has_unit.then(|| seconds_or_0(text).ok()).flatten();
    time.map(DeviceMoment::Seconds).ok_or_else(|| form.to_owned())
}

/// The same, including 0.
pub fn seconds_or_0(text: &str) -> Result<f64, String> {
    if text.parse() == Ok(0.0) { Ok(0.0) } else { seconds(text) }
}

/// A CPU within the kernel's masks.
pub fn cpu(text: &str) -> Result<usize, String> {
    let cpu = text.parse().ok().filter(|cpu| *cpu < 1024);
    cpu.ok_or_else(|| "give the number of a CPU, from 0".to_owned())
}

/// The sample format of a raw file.
pub fn format(name: &str) -> Result<SampleFormat, String> {
    SampleFormat::from_name(name).ok_or_else(|| "give sc16 or cf32".to_owned())
}

fn makes_sense(number: &f64) -> bool {
    number.is_finite() && *number > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finite_numbers_above_zero_pass() {
        assert_eq!(positive("6.25e6"), Ok(6.25e6));
        for text in ["", "0", "-1", "nan", "inf", "1e999", "6 MHz", "0x10", "M", "k", "ms", "10M"] {
            assert!(positive(text).is_err(), "{text}");
        }
        for text in ["", "0k", "-1M", "nanM", "infG", "1e308G", "5ms", "5 M", "10Mk", "m"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_whole_number_may_have_its_unit() {
        for (text, want) in [("4M", "4000000"), ("1e3", "1000"), ("-2k", "-2000"), ("0.5k", "500")]
        {
            assert_eq!(digits(text).as_deref(), Some(want), "{text}");
        }
        for text in ["", "12", "0.5", "1e300", "5ms", "M"] {
            assert_eq!(digits(text), None, "{text}");
        }
    }

    #[test]
    fn a_whole_number_outside_its_range_names_the_range() {
        assert_eq!(whole::<u64>(..)("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(whole::<u16>(1..=64)("64"), Ok(64));
        for text in ["", "0", "65", "1.5", "1e20", "0 1", "-5", "4294967296", "A"] {
            let error = whole::<u16>(1..=64)(text).unwrap_err();
            assert_eq!(error, "give a whole number from 1 to 64", "{text}");
        }
        for (error, most) in [
            (whole::<u32>(..)("4294967296").unwrap_err(), "to 4294967295;"),
            (whole::<i32>(1..)("-1").unwrap_err(), "from 1 to 2147483647;"),
            (whole::<u8>(..)("256").unwrap_err(), "from 0 to 255"),
            (whole::<u64>(1..)("1e20").unwrap_err(), "from 1 to 18446744073709551615;"),
        ] {
            assert!(error.contains(most), "{error}");
        }
    }

    #[test]
    fn rates_and_times_may_have_their_units() {
        for (text, want) in [("10M", 10e6), ("6.25M", 6.25e6), ("1.5k", 1500.0), ("2e0G", 2e9)] {
            assert_eq!(rate(text), Ok(want), "{text}");
        }
        for (text, want) in [("5ms", 0.005), ("2", 2.0), ("2s", 2.0), ("1.5min", 90.0)] {
            assert_eq!(seconds(text), Ok(want), "{text}");
        }
        for (text, want) in [("10k", 10e3), ("-2.5M", -2.5e6), ("0", 0.0), ("-1e3", -1e3)] {
            assert_eq!(frequency(text), Ok(want), "{text}");
        }
        for text in ["", "inf", "nanM", "1e308G", "10 Hz"] {
            assert!(frequency(text).is_err(), "{text}");
        }
        assert!(seconds("1e9").is_ok() && seconds("1e300h").is_err());
        assert!(seconds("1e10").unwrap_err().contains("at most 1e9 seconds"));
        assert!((seconds("300us").unwrap() - 300e-6).abs() < 1e-18);
        for text in ["90", "90s", "1min 30s", "1.5e2"] {
            let want = if text == "1.5e2" { 150.0 } else { 90.0 };
            assert_eq!(seconds(text), Ok(want), "{text}");
        }
        assert!(seconds("-1").is_err() && seconds("soon").is_err() && seconds("0s").is_err());
        assert_eq!((seconds_or_0("0"), seconds_or_0("2ms")), (Ok(0.0), Ok(0.002)));
        let error = seconds("10M").unwrap_err();
        assert!(error.contains("0.005 or 5ms"), "{error}");
    }

    #[test]
    fn a_moment_of_a_device_is_in_ticks_on_its_clock_or_from_now() {
        use DeviceMoment::{FromNow, Seconds, Ticks};
        for (text, want, ticks) in [
            ("1000", Ticks(1000), 1000),
            ("4M", Ticks(4_000_000), 4_000_000),
            ("2s", Seconds(2.0), 2_000_000),
            ("1min 30s", Seconds(90.0), 90_000_000),
            ("+500ms", FromNow(0.5), 500_007),
            ("+2", FromNow(2.0), 2_000_007),
        ] {
            let moment = device_moment(text).unwrap();
            assert_eq!((moment, moment.ticks(7, 1e6)), (want, ticks), "{text}");
        }
        for text in ["", "-2s", "1.5", "soon", "+", "+-1", "1e20", "2 MHz"] {
            assert!(device_moment(text).unwrap_err().contains("such as +2s"), "{text}");
        }
    }

    #[test]
    fn the_limits_of_a_range_belong_to_it_in_any_unit() {
        let check =
            |text: &str| within("--x", (seconds(text).unwrap(), " s"), 20e-6..=10.0, "20us to 10s");
        for text in ["20us", "0.00002", "20000ns", "10s", "10000ms"] {
            assert!(check(text).is_ok(), "{text}");
        }
        assert!(check("19us").unwrap_err().to_string().ends_with(": give 20us to 10s"));
        assert!(check("10001ms").is_err());
    }
}
