//! The sensors of the front end.

use super::values::{string_map, text};
use crate::front_end::FrontEnd;
use crate::scene::Scene;
use rmpv::Value;

/// The sensors of the receive side; the transmit side has no `rssi`.
const ALL: [&str; 4] = ["rssi", "ad9361_temperature", "lo_lock", "lo_locked"];
/// The sensors of a front end whose tuning has no effect: it is always locked.
const WITHOUT_EFFECT: [&str; 3] = ["ad9361_temperature", "lo_lock", "lo_locked"];

const TEMPERATURE: &str = "41.2";
/// Thermal noise, mW in a hertz, with the noise figure.
const NOISE_MW_HZ: f64 = 8e-18;
/// The strength has 9 bits of a quarter of a decibel.
const STEPS_PER_DB: f64 = 4.0;
const STRENGTH_DB_MIN: f64 = -127.75;

/// Returns the names of the sensors of a direction.
pub(super) fn names(direction: &str, has_effect: bool) -> &'static [&'static str] {
    match (has_effect, direction) {
        (false, _) => &WITHOUT_EFFECT,
        (true, "RX") => &ALL,
        (true, _) => &ALL[1..],
    }
}

/// Reads the sensor of direction and name.
pub(super) fn read(
    args: &[Value],
    front_end: &FrontEnd,
    scene: Option<&Scene>,
    now_ns: u64,
) -> Result<Value, String> {
    let (direction, name) = (text(args, 0)?, text(args, 1)?);
    let names = names(direction, scene.is_some());
    if !names.contains(&name) {
        return Err(format!("there is no sensor {name}; there are {}", names.join(", ")));
    }
    let (kind, unit, value) = match (name, scene) {
        ("rssi", Some(scene)) => ("REALNUM", "dB", strength(front_end, scene)),
        ("ad9361_temperature", _) => ("REALNUM", "C", TEMPERATURE.to_owned()),
        (_, None) => ("BOOLEAN", "locked", true.to_string()),
        _ => ("BOOLEAN", "locked", front_end.is_locked(direction == "RX", now_ns).to_string()),
    };
    Ok(string_map([("name", name), ("type", kind), ("unit", unit), ("value", &value)]))
}

/// Returns the power at the connector within the bandwidth of channel 0, dBm.
fn strength(front_end: &FrontEnd, scene: &Scene) -> String {
    let (lo_hz, bandwidth_hz) = (front_end.rx.lo_hz, front_end.rx.bandwidth_hz[0]);
    let power_mw = scene.power_mw(lo_hz, bandwidth_hz) + NOISE_MW_HZ * bandwidth_hz;
    let db = (10.0 * power_mw.log10() * STEPS_PER_DB).round() / STEPS_PER_DB;
    format!("{:.2}", db.clamp(STRENGTH_DB_MIN, 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::personality::FrontEndKind;

    fn value(args: [&str; 2], front_end: &FrontEnd, scene: Option<&Scene>, now_ns: u64) -> String {
        let map = read(&args.map(Value::from), front_end, scene, now_ns).unwrap();
        let Value::Map(pairs) = map else { panic!("{map}") };
        pairs.iter().find(|(key, _)| key.as_str() == Some("value")).unwrap().1.to_string()
    }

    #[test]
    fn the_strength_is_that_of_the_stations_within_the_bandwidth() {
        let station =
            |hz: f64| format!("[[station]]\nkind = \"tone\"\nfrequency = {hz:?}\nlevel = -50\n");
        let scene = Scene::parse(&(station(1e9) + &station(1.001e9) + &station(2e9))).unwrap();
        let mut front_end = FrontEnd::new(FrontEndKind::Ad9361, true);
        front_end.tune("RX1", 1e9, 0).unwrap();
        front_end.set_bandwidth("RX1", 10e6).unwrap();
        assert_eq!(value(["RX", "rssi"], &front_end, Some(&scene), 0), "\"-47.00\"");
        front_end.tune("RX1", 1.5e9, 0).unwrap();
        assert_eq!(value(["RX", "rssi"], &front_end, Some(&scene), 0), "\"-101.00\"");
    }

    #[test]
    fn the_lock_is_lost_for_a_moment_where_tuning_has_an_effect() {
        let (mut front_end, scene) = (FrontEnd::new(FrontEndKind::Ad9361, true), Scene::default());
        front_end.tune("RX1", 1e9, 5).unwrap();
        let locked = |scene, now_ns| value(["RX", "lo_locked"], &front_end, scene, now_ns);
        assert_eq!(locked(Some(&scene), 6), "\"false\"");
        assert_eq!(locked(Some(&scene), 1_000_005), "\"true\"");
        assert_eq!(locked(None, 6), "\"true\"");
        let missing = read(&["TX", "rssi"].map(Value::from), &front_end, Some(&scene), 0);
        assert!(missing.unwrap_err().contains("there are ad9361_temperature"));
    }
}
