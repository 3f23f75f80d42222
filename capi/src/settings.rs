//! Settings and readings by their names.

use std::ffi::c_char;

use millstream_client::{Channel, ClientError, Radio, StreamDirection};

use crate::guard::{Failure, bad, guarded};
use crate::pointers::{CTime, put, text};
use crate::things::Thing;

/// Returns a direction of C.
pub fn direction(number: i32) -> Result<StreamDirection, Failure> {
    match number {
        0 => Ok(StreamDirection::Rx),
        1 => Ok(StreamDirection::Tx),
        other => bad(format!("{other} is no direction: give MILLSTREAM_RX or MILLSTREAM_TX")),
    }
}

/// Sets one thing of a channel or of the radio.
///
/// # Safety
/// `key` and `value` are null or texts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_set(
    radio: u64,
    dir: i32,
    channel: u32,
    key: *const c_char,
    value: *const c_char,
) -> i32 {
    guarded(|| {
        let thing = Thing::of(radio)?;
        // SAFETY: as the caller says.
        let (key, value) = unsafe { (text(key, "key")?, text(value, "value")?) };
        let radio = thing.radio()?;
        set(radio, &radio.channel(direction(dir)?, channel as usize), key, value)?;
        Ok(0)
    })
}

fn set(radio: &Radio, of: &Channel<'_>, key: &str, value: &str) -> Result<(), Failure> {
    let number = || match value.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => bad(format!("{key}={value} cannot be used: give a number, such as 433.9e6")),
    };
    match (key, value) {
        ("frequency", _) => of.set_frequency(number()?, None).map(drop)?,
        ("lo_offset", _) => {
            let freq_hz = of.frequency()?.freq_hz;
            of.set_frequency(freq_hz, Some(number()?)).map(drop)?;
        }
        ("gain", "auto") => of.set_automatic_gain(true)?,
        ("gain", _) => of.set_gain(number()?).map(drop)?,
        ("rate", _) => of.set_rate(number()?).map(drop)?,
        ("bandwidth", _) => of.set_bandwidth(number()?).map(drop)?,
        ("antenna", _) => of.set_antenna(value)?,
        ("clock_source", _) => radio.set_clock_source(value)?,
        ("time_source", _) => radio.set_time_source(value)?,
        ("clock_rate", _) => radio.set_tick_rate(number()?).map(drop)?,
        ("add_fault", _) => radio.add_fault(value)?,
        _ => {
            return bad(format!(
                "{key} cannot be set: give frequency, lo_offset, gain, rate, bandwidth, antenna, \
                 clock_source, time_source, clock_rate or add_fault"
            ));
        }
    }
    Ok(())
}

/// Reads one thing as a text. Returns its length.
///
/// # Safety
/// `key` is null or a text; `out` has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_get(
    radio: u64,
    dir: i32,
    channel: u32,
    key: *const c_char,
    out: *mut c_char,
    room: usize,
) -> i32 {
    guarded(|| {
        if out.is_null() && room > 0 {
            return bad("text is a null pointer: give an address, or no room");
        }
        let thing = Thing::of(radio)?;
        // SAFETY: as the caller says.
        let key = unsafe { text(key, "key") }?;
        let radio = thing.radio()?;
        let value = get(radio, direction(dir)?, channel as usize, key)?;
        if room > 0 {
            let bytes = value.len().min(room - 1);
            // SAFETY: `out` has room for `bytes` and a 0 behind them, as the caller says.
            unsafe {
                out.copy_from_nonoverlapping(value.as_ptr().cast(), bytes);
                out.add(bytes).write(0);
            }
        }
        Ok(i32::try_from(value.len()).unwrap_or(i32::MAX))
    })
}

fn get(
    radio: &Radio,
    direction: StreamDirection,
    channel: usize,
    key: &str,
) -> Result<String, Failure> {
    let of = radio.channel(direction, channel);
    let range = |range: Option<(f64, f64)>| match range {
        Some((low, high)) => Ok(format!("{low} {high}")),
        None => bad(format!("the radio says nothing about {key}")),
    };
    Ok(match key {
        "frequency" => of.frequency()?.freq_hz.to_string(),
        "lo_offset" => (-of.frequency()?.bb_hz).to_string(),
        "gain" if of.automatic_gain()? => "auto".to_owned(),
        "gain" => of.gain()?.to_string(),
        "rate" => of.rate()?.to_string(),
        "bandwidth" => of.bandwidth()?.to_string(),
        "antenna" => of.antenna()?.to_owned(),
        "antennas" => of.antennas().join(" "),
        "frequency_range" => {
            let (below, above) = of.bb_range();
            range(of.rf_range().map(|(low, high)| (low + below, high + above)))?
        }
        "gain_range" => range(of.gain_range())?,
        "rate_range" => range(Some(of.rate_range()))?,
        "bandwidth_range" => range(of.bandwidth_range())?,
        "clock_source" => radio.clock_source()?,
        "time_source" => radio.time_source()?,
        "clock_rate" => radio.tick_rate()?.to_string(),
        "channels" => radio.channels(direction).to_string(),
        "type" => radio.device_type().to_owned(),
        "product" => radio.product().to_owned(),
        "serial" => radio.serial().to_owned(),
        "name" => radio.name().to_owned(),
        "address" => radio.address().to_string(),
        "sensors" => [of.sensors()?, radio.sensors()?].concat().join(" "),
        name => match of.sensor(name) {
            Err(ClientError::NoSensor { .. }) => radio.sensor(name)?.value,
            reading => reading?.value,
        },
    })
}

/// Reads the radio's time.
///
/// # Safety
/// `time` is null, or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_now(radio: u64, time: *mut CTime) -> i32 {
    guarded(|| {
        let thing = Thing::of(radio)?;
        let radio = thing.radio()?;
        // SAFETY: as the caller says.
        unsafe { put(time, "time", || Ok(Some(radio.now()?).into())) }
    })
}
