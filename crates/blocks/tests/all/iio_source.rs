//! A device of Industrial I/O made of files.

use millstream_blocks::iio_source::IioSource;
use millstream_flow::{BlockFacts, Metric, Mock, TagTime, TagValue, keys};
use millstream_host::iio::CaptureSpec;
use millstream_host::journal::Journal;
use std::fs;
use std::io::Write;
use std::sync::Arc;

const DEVICE: &str = "sys/bus/iio/devices/iio:device0";

/// A converter with two channels of 16 bits and a trigger of 1 kHz.
fn machine() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for (path, text) in [
        ("name", "adc\n"),
        ("in_voltage_scale", "0.5\n"),
        ("in_voltage1_offset", "-2\n"),
        ("current_timestamp_clock", "realtime\n"),
        ("buffer/enable", "0\n"),
        ("buffer/length", "2\n"),
        ("trigger/current_trigger", "clock\n"),
        ("scan_elements/in_voltage0_en", "0\n"),
        ("scan_elements/in_voltage0_index", "0\n"),
        ("scan_elements/in_voltage0_type", "le:s16/16>>0\n"),
        ("scan_elements/in_voltage1_en", "0\n"),
        ("scan_elements/in_voltage1_index", "1\n"),
        ("scan_elements/in_voltage1_type", "be:u12/16>>0\n"),
        ("scan_elements/in_timestamp_en", "0\n"),
        ("scan_elements/in_timestamp_index", "2\n"),
        ("scan_elements/in_timestamp_type", "le:s64/64>>0\n"),
    ] {
        put(&format!("{DEVICE}/{path}"), text);
    }
    put("sys/bus/iio/devices/trigger0/name", "clock\n");
    put("sys/bus/iio/devices/trigger0/sampling_frequency", "1000.000\n");
    put("dev/iio:device0", "");
    root
}

fn scan(first: i16, second: u16, time_ns: i64) -> Vec<u8> {
    // The time begins at a multiple of its own size.
    let values = [first.to_le_bytes(), second.to_be_bytes(), [0; 2], [0; 2]].concat();
    [values, time_ns.to_le_bytes().to_vec()].concat()
}

#[test]
fn scans_become_values_with_their_times_and_the_missed_are_counted() {
    let root = machine();
    let folder = tempfile::tempdir().unwrap();
    let journal = Arc::new(Journal::below(root.path(), folder.path()));
    let wanted = CaptureSpec { length: 64, ..CaptureSpec::default() };
    let source = IioSource::open(root.path(), &wanted, &journal).unwrap();
    let mut mock = Mock::new(source);
    let mut node =
        fs::OpenOptions::new().append(true).open(root.path().join("dev/iio:device0")).unwrap();
    let scans = [
        scan(-100, 4, 1_500_000_000),
        scan(7, 2, 1_501_000_100),
        // Two did not come.
        scan(8, 0, 1_503_999_900),
    ];
    node.write_all(&scans.concat()).unwrap();
    mock.call().unwrap();
    for port in ["out0", "out1"] {
        let tags = mock.take_tags(port);
        let value = |offset: u64, key| {
            let found = tags.iter().find(|tag| (tag.offset, tag.key) == (offset, key));
            found.map(|tag| tag.value)
        };
        assert_eq!(value(0, keys::RX_RATE_HZ), Some(TagValue::from(1000.0)));
        let time = TagTime::from_ticks(1_500_000_000, 1e9);
        assert_eq!(value(0, keys::RX_TIME), Some(TagValue::from(time)));
        assert_eq!((value(1, keys::RX_TIME), value(0, keys::LOSS_ITEMS)), (None, None));
        assert_eq!(value(2, keys::LOSS_ITEMS), Some(TagValue::from(2u64)));
        assert_eq!(value(2, keys::LOSS_CAUSE), Some(TagValue::text("iio_buffer")));
    }
    assert_eq!(mock.take::<f32>("out0"), [-50.0, 3.5, 4.0]);
    assert_eq!(mock.take::<f32>("out1"), [1.0, 0.0, -1.0]);
    let metrics = BlockFacts::of(&mock.block).metrics;
    let counts = metrics.iter().map(|(name, metric)| match metric {
        Metric::Counter(count) => (*name, count.get()),
        _ => unreachable!("counters"),
    });
    assert_eq!(counts.collect::<Vec<_>>(), [("scans", 3), ("missed", 2)]);
    drop(mock);
    let enabled = fs::read_to_string(root.path().join(DEVICE).join("buffer/enable")).unwrap();
    assert_eq!((enabled.trim(), journal.open_changes()), ("0", 0), "it was left as it was");
}
