//! Finding and opening radios; their settings by names.

use std::ffi::{c_char, c_void};
use std::time::Duration;

use millstream_client::{ClientArgs, DeviceTime, HandleTable, Radio, StreamDirection, find};

use crate::guard::{Failure, guarded};
use crate::text::{NumberSink, TextSink, Texts, pairs, text};

/// The open radios.
pub(crate) static RADIOS: HandleTable<Radio> = HandleTable::new();

/// Directions as SoapySDR counts them.
pub(crate) fn direction(number: i32) -> Result<StreamDirection, Failure> {
    match number {
        0 => Ok(StreamDirection::Tx),
        1 => Ok(StreamDirection::Rx),
        other => Err(Failure::Argument(format!("{other} is no direction: 0 is TX, 1 is RX"))),
    }
}

pub(crate) fn radio(handle: u64) -> Result<std::sync::Arc<Radio>, Failure> {
    RADIOS.get(handle).ok_or(Failure::NoHandle)
}

fn no_setting(name: &str) -> Failure {
    Failure::Argument(format!("there is no setting \"{name}\""))
}

/// Passes the keys and values of each radio that fits to `sink`, and ends each radio with a null
/// text. Returns their number.
///
/// # Safety
/// `keys` has `count` keys, each followed by its value; `sink` takes `out` and a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ms_find(
    keys: *const *const c_char,
    count: usize,
    out: *mut c_void,
    sink: TextSink,
) -> i32 {
    guarded(|| {
        // SAFETY: as the caller says.
        let (args, out) = unsafe { (pairs(keys, count)?, Texts::new(out, sink)) };
        let args = ClientArgs::from_pairs(args);
        let found = find(&args)?;
        for radio in &found {
            let addr = radio.addr.map(|addr| addr.to_string());
            if let Some(addr) = &addr {
                out.pair("addr", addr);
            } else {
                out.pair("radio", "emulated");
            }
            let known = [
                ("type", &radio.device_type),
                ("product", &radio.product),
                ("name", &radio.name),
                ("serial", &radio.serial),
            ];
            for (key, value) in known.into_iter().filter(|(_, value)| !value.is_empty()) {
                out.pair(key, value);
            }
            out.pair("label", &radio.label());
            out.end();
        }
        Ok(found.len() as i32)
    })
}

/// Opens a radio and stores its number. Keys that nobody knows go to `sink`.
///
/// # Safety
/// `keys` has `count` keys, each followed by its value; `handle` can be written; `sink` takes `out`
/// and a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ms_open(
    keys: *const *const c_char,
    count: usize,
    handle: *mut u64,
    out: *mut c_void,
    sink: TextSink,
) -> i32 {
    guarded(|| {
        // SAFETY: as the caller says.
        let (args, out) = unsafe { (pairs(keys, count)?, Texts::new(out, sink)) };
        let args = ClientArgs::from_pairs(args);
        args.unknown().iter().for_each(|key| out.put(key));
        let radio = Radio::open(&args)?;
        // SAFETY: as the caller says.
        unsafe { *handle = RADIOS.insert(radio) };
        Ok(0)
    })
}

/// Closes a radio and its streams.
#[unsafe(no_mangle)]
pub extern "C" fn ms_close(handle: u64) -> i32 {
    guarded(|| {
        RADIOS.remove(handle).ok_or(Failure::NoHandle)?.close(Duration::MAX);
        Ok(0)
    })
}

/// Reads a number: `frequency`, `frequency.RF`, `frequency.BB`, `gain`, `has_automatic_gain`,
/// `automatic_gain`, `bandwidth`, `rate`, `clock_rate`, `channels` or `emulated`.
///
/// # Safety
/// `name` is a text; `value` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ms_get_number(
    handle: u64,
    dir: i32,
    channel: usize,
    name: *const c_char,
    value: *mut f64,
) -> i32 {
    guarded(|| {
        // SAFETY: as the caller says.
        let (radio, dir, name) = (radio(handle)?, direction(dir)?, unsafe { text(name) }?);
        let of = radio.channel(dir, channel);
        let truth = |truth: bool| f64::from(u8::from(truth));
        let number = match name {
            "frequency" => of.frequency()?.freq_hz,
            "frequency.RF" => of.frequency()?.rf_hz,
            "frequency.BB" => of.frequency()?.bb_hz,
            "gain" => of.gain()?,
            "has_automatic_gain" => truth(of.has_automatic_gain()),
            "automatic_gain" => truth(of.automatic_gain()?),
            "bandwidth" => of.bandwidth()?,
            "rate" => of.rate()?,
            "clock_rate" => radio.tick_rate()?,
            "channels" => radio.channels(dir) as f64,
            "emulated" => truth(radio.is_emulated()),
            other => return Err(no_setting(other)),
        };
        // SAFETY: as the caller says.
        unsafe { *value = number };
        Ok(0)
    })
}

/// Sets a number: `frequency` (with `offset`, the distance of the oscillator above it),
/// `frequency.RF`, `frequency.BB`, `gain`, `automatic_gain`, `bandwidth`, `rate` or `clock_rate`.
///
/// # Safety
/// `name` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ms_set_number(
    handle: u64,
    dir: i32,
    channel: usize,
    name: *const c_char,
    value: f64,
    offset: f64,
) -> i32 {
    guarded(|| {
        // SAFETY: as the caller says.
        let (radio, dir, name) = (radio(handle)?, direction(dir)?, unsafe { text(name) }?);
        let of = radio.channel(dir, channel);
        match name {
            "frequency" => of.set_frequency(value, Some(offset)).map(drop)?,
            "frequency.RF" => of.set_rf(value).map(drop)?,
            "frequency.BB" => of.set_bb(value).map(drop)?,
            "gain" => of.set_gain(value).map(drop)?,
            "automatic_gain" => of.set_automatic_gain(value != 0.0)?,
            "bandwidth" => of.set_bandwidth(value).map(drop)?,
            "rate" => of.set_rate(value).map(drop)?,
            "clock_rate" => radio.set_tick_rate(value).map(drop)?,
            other => return Err(no_setting(other)),
        }
        Ok(0)
    })
}

/// Reads a range: `frequency`, `frequency.RF`, `frequency.BB`, `gain`, `bandwidth`, `rate` or
/// `clock_rate`. Returns 1 when it is not known.
///
/// # Safety
/// `name` is a text; `low` and `high` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ms_get_range(
    handle: u64,
    dir: i32,
    name: *const c_char,
    low: *mut f64,
    high: *mut f64,
) -> i32 {
    guarded(|| {
        // SAFETY: as the caller says.
        let (radio, dir, name) = (radio(handle)?, direction(dir)?, unsafe { text(name) }?);
        let of = radio.channel(dir, 0);
        let range = match name {
            "frequency" => of.rf_range().map(|(low, high)| {
                let (below, above) = of.bb_range();
                (low + below, high + above)
            }),
            "frequency.RF" => of.rf_range(),
            "frequency.BB" => Some(of.bb_range()),
            "gain" => of.gain_range(),
            "bandwidth" => of.bandwidth_range(),
            "rate" => Some(of.rate_range()),
            "clock_rate" => Some(radio.tick_rate_range()?),
            other => return Err(no_setting(other)),
        };
        let Some(range) = range else { return Ok(1) };
        // SAFETY: as the caller says.
        unsafe { (*low, *high) = range };
        Ok(0)
    })
}

/// Passes a list of numbers to `sink`: `rates`.
///
/// # Safety
/// `name` is a text; `sink` takes `out` and a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ms_get_numbers(
    handle: u64,
    dir: i32,
    name: *const c_char,
    out: *mut c_void,
    sink: NumberSink,
) -> i32 {
    guarded(|| {
        // SAFETY: as the caller says.
        let (radio, dir, name) = (radio(handle)?, direction(dir)?, unsafe { text(name) }?);
        let of = radio.channel(dir, 0);
        let numbers = match name {
            "rates" => of.usual_rates(),
            other => return Err(no_setting(other)),
        };
        // SAFETY: as the caller says.
        numbers.into_iter().for_each(|number| unsafe { sink(out, number) });
        Ok(0)
    })
}

/// Passes texts to `sink`: `info` (keys and values), `antennas`, `antenna`, `clock_sources`,
/// `clock_source`, `time_sources`, `time_source`, `sensors`, `channel_sensors` or `last_gap`.
///
/// # Safety
/// `name` is a text; `sink` takes `out` and a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ms_get_texts(
    handle: u64,
    dir: i32,
    channel: usize,
    name: *const c_char,
    out: *mut c_void,
    sink: TextSink,
) -> i32 {
    guarded(|| {
        // SAFETY: as the caller says.
        let (name, out) = unsafe { (text(name)?, Texts::new(out, sink)) };
        let radio = radio(handle)?;
        let of = radio.channel(direction(dir)?, channel);
        let all = |texts: Vec<String>| texts.iter().for_each(|text| out.put(text));
        match name {
            "info" => info(&radio, &out),
            "antennas" => of.antennas().iter().for_each(|antenna| out.put(antenna)),
            "antenna" => out.put(of.antenna()?),
            "clock_sources" => all(radio.clock_sources()?),
            "clock_source" => out.put(&radio.clock_source()?),
            "time_sources" => all(radio.time_sources()?),
            "time_source" => out.put(&radio.time_source()?),
            "sensors" => all(radio.sensors()?),
            "channel_sensors" => all(of.sensors()?),
            "last_gap" => {
                if let Some(gap) = radio.rx(channel).last_gap() {
                    let (samples, cause, resume) = (gap.samples, gap.cause, gap.resume.ns());
                    out.put(&format!("samples={samples},cause={cause},resume_ns={resume}"));
                }
            }
            other => return Err(no_setting(other)),
        }
        Ok(0)
    })
}

fn info(radio: &Radio, out: &Texts) {
    out.pair("version", env!("CARGO_PKG_VERSION"));
    out.pair("address", &radio.address().to_string());
    out.pair("type", radio.device_type());
    out.pair("product", radio.product());
    out.pair("serial", radio.serial());
    out.pair("name", radio.name());
    out.pair("packet_bytes", &radio.frame_bytes().to_string());
    let emulated = if radio.is_emulated() { "in this process" } else { "no" };
    out.pair("emulated", emulated);
}

/// Sets a text: `antenna`, `clock_source`, `time_source` or `fault`.
///
/// # Safety
/// `name` and `value` are texts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ms_set_text(
    handle: u64,
    dir: i32,
    channel: usize,
    name: *const c_char,
    value: *const c_char,
) -> i32 {
    guarded(|| {
        // SAFETY: as the caller says.
        let (name, value) = unsafe { (text(name)?, text(value)?) };
        let radio = radio(handle)?;
        match name {
            "antenna" => radio.channel(direction(dir)?, channel).set_antenna(value)?,
            "clock_source" => radio.set_clock_source(value)?,
            "time_source" => radio.set_time_source(value)?,
            "add_fault" => radio.add_fault(value)?,
            other => return Err(no_setting(other)),
        }
        Ok(0)
    })
}

/// Passes the value, the unit and the kind of a sensor to `sink`; of the radio itself when `dir`
/// is below 0.
///
/// # Safety
/// `name` is a text; `sink` takes `out` and a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ms_get_sensor(
    handle: u64,
    dir: i32,
    channel: usize,
    name: *const c_char,
    out: *mut c_void,
    sink: TextSink,
) -> i32 {
    guarded(|| {
        // SAFETY: as the caller says.
        let (name, out) = unsafe { (text(name)?, Texts::new(out, sink)) };
        let radio = radio(handle)?;
        let reading = match dir {
            ..0 => radio.sensor(name)?,
            dir => radio.channel(direction(dir)?, channel).sensor(name)?,
        };
        [reading.value, reading.unit, reading.kind].iter().for_each(|text| out.put(text));
        Ok(0)
    })
}

/// Reads the radio's time, or that of the latest PPS edge.
///
/// # Safety
/// `time_ns` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ms_get_time(handle: u64, pps: bool, time_ns: *mut i64) -> i32 {
    guarded(|| {
        let radio = radio(handle)?;
        let time = if pps { radio.last_pps() } else { radio.now() }?;
        // SAFETY: as the caller says.
        unsafe { *time_ns = time.ns() };
        Ok(0)
    })
}

/// Sets the radio's time, at once or at the next PPS edge.
#[unsafe(no_mangle)]
pub extern "C" fn ms_set_time(handle: u64, pps: bool, time_ns: i64) -> i32 {
    guarded(|| {
        let (radio, time) = (radio(handle)?, DeviceTime::from_ns(time_ns));
        if pps { radio.set_time_at_pps(time) } else { radio.set_time(time) }?;
        Ok(0)
    })
}

/// Sets the time at which settings take effect; 0 for at once.
#[unsafe(no_mangle)]
pub extern "C" fn ms_set_command_time(handle: u64, time_ns: i64) -> i32 {
    guarded(|| {
        let time = Some(time_ns).filter(|ns| *ns != 0).map(DeviceTime::from_ns);
        radio(handle)?.set_command_time(time)?;
        Ok(0)
    })
}

/// Reads the time at which settings take effect; 0 for at once.
///
/// # Safety
/// `time_ns` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ms_get_command_time(handle: u64, time_ns: *mut i64) -> i32 {
    guarded(|| {
        let time = radio(handle)?.command_time()?;
        // SAFETY: as the caller says.
        unsafe { *time_ns = time.map_or(0, DeviceTime::ns) };
        Ok(0)
    })
}
