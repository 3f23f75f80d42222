use super::*;
use crate::journal::Journal;
use std::io::Write;
use std::sync::Arc;

const DEVICE: &str = "sys/bus/iio/devices/iio:device0";

/// Returns a machine of files with one accelerometer.
fn machine(more: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let of_device = [
        ("name", "kxcjk1013\n"),
        ("current_timestamp_clock", "realtime\n"),
        ("buffer/enable", "0\n"),
        ("buffer/length", "2\n"),
        ("trigger/current_trigger", "\n"),
        ("scan_elements/in_accel_x_en", "0\n"),
        ("scan_elements/in_accel_x_index", "0\n"),
        ("scan_elements/in_accel_x_type", "le:s12/16>>4\n"),
        ("scan_elements/in_timestamp_en", "0\n"),
        ("scan_elements/in_timestamp_index", "3\n"),
        ("scan_elements/in_timestamp_type", "le:s64/64>>0\n"),
    ];
    for (path, text) in of_device {
        put(&format!("{DEVICE}/{path}"), text);
    }
    put("sys/bus/iio/devices/trigger0/name", "timer\n");
    put("dev/iio:device0", "");
    for (path, text) in more {
        put(path, text);
    }
    root
}

/// Returns every file of the device with its content.
fn state(root: &Path) -> Vec<(PathBuf, String)> {
    let folder = root.join(DEVICE);
    let inner = ["", "buffer", "trigger", "scan_elements"].map(|inner| folder.join(inner));
    let files = inner.iter().flat_map(|folder| fs::read_dir(folder).unwrap().flatten());
    let paths = files.map(|entry| entry.path()).filter(|path| path.is_file());
    let mut all: Vec<_> =
        paths.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect();
    all.sort();
    all
}

fn journal(root: &tempfile::TempDir) -> (tempfile::TempDir, Arc<Journal>) {
    let folder = tempfile::tempdir().unwrap();
    let journal = Arc::new(Journal::below(root.path(), folder.path()));
    (folder, journal)
}

#[test]
fn a_device_is_set_up_read_and_left_as_it_was() {
    let root = machine(&[]);
    let (_folder, journal) = journal(&root);
    let before = state(root.path());
    let wanted = CaptureSpec { trigger: Some("timer"), length: 64, ..CaptureSpec::default() };
    let mut capture = IioCapture::begin(root.path(), &wanted, &journal).unwrap();
    let read = |path: &str| fs::read_to_string(root.path().join(DEVICE).join(path)).unwrap();
    assert_eq!(read("current_timestamp_clock").trim(), "monotonic");
    assert_eq!(read("trigger/current_trigger").trim(), "timer");
    assert_eq!(read("scan_elements/in_timestamp_en").trim(), "1");
    assert_eq!((read("buffer/length").trim(), read("buffer/enable").trim()), ("64", "1"));
    let mut room = [0; 100];
    assert!(capture.read(&mut room).unwrap().is_empty());
    let mut scan = vec![0x10, 0, 0, 0, 0, 0, 0, 0];
    scan.extend(77i64.to_le_bytes());
    let node = root.path().join("dev/iio:device0");
    let mut node = fs::OpenOptions::new().append(true).open(node).unwrap();
    node.write_all(&[&scan[..], &scan[..]].concat()).unwrap();
    let bytes = capture.read(&mut room).unwrap().to_vec();
    assert_eq!(bytes.len(), 32);
    assert_eq!(capture.layout.time_ns(&bytes[16..]), 77);
    assert_eq!(capture.layout.values(&bytes).collect::<Vec<_>>(), [("in_accel_x", 1)]);
    assert_eq!((capture.trigger.as_str(), capture.grid_ns), ("timer", None));
    assert_eq!(capture.period_ns, None);
    assert_eq!(capture.layout.names().collect::<Vec<_>>(), ["in_accel_x"]);
    capture.end().unwrap();
    assert_eq!((state(root.path()), journal.open_changes()), (before, 0));
}

#[test]
fn what_is_missing_is_said_and_nothing_is_changed() {
    let fails = |root: &tempfile::TempDir, wanted: &CaptureSpec<'_>| {
        let (_folder, journal) = journal(root);
        let error = IioCapture::begin(root.path(), wanted, &journal).unwrap_err().to_string();
        assert_eq!(journal.open_changes(), 0);
        error
    };
    let root = machine(&[]);
    let before = state(root.path());
    let error = fails(&root, &CaptureSpec::default());
    assert!(error.contains("there are: timer") && error.contains("--iio-trigger"), "{error}");
    let error = fails(&root, &CaptureSpec { trigger: Some("none"), ..CaptureSpec::default() });
    assert!(error.contains("kxcjk1013 needs a trigger"), "{error}");
    let error = fails(&root, &CaptureSpec { device: Some("adc"), ..CaptureSpec::default() });
    assert!(error.contains("no IIO device `adc`") && error.contains("kxcjk1013"), "{error}");
    assert_eq!(state(root.path()), before);
    // The last step fails: all previous steps are undone.
    fs::remove_file(root.path().join("dev/iio:device0")).unwrap();
    let error =
        fails(&root, &CaptureSpec { trigger: Some("timer"), length: 9, ..CaptureSpec::default() });
    assert!(error.contains("dev/iio:device0: No such file"), "{error}");
    assert_eq!(state(root.path()), before);
    let strange = [(&*format!("{DEVICE}/scan_elements/in_accel_x_type"), "le:s12/12>>0\n")];
    let error = fails(&machine(&strange), &CaptureSpec::default());
    assert!(error.contains("in_accel_x_type contains `le:s12/12>>0`"), "{error}");
    let nothing = tempfile::tempdir().unwrap();
    let error = fails(&nothing, &CaptureSpec::default());
    assert!(error.contains("there are: none") && error.contains("guest --iio"), "{error}");
}

#[test]
fn values_have_the_unit_of_their_element_or_of_its_type() {
    let more = [
        ("in_accel_scale", "0.5\n"),
        ("in_voltage0_scale", "2\n"),
        ("in_voltage_scale", "3\n"),
        ("in_voltage1_offset", "-8\n"),
        ("in_temp_scale", "none\n"),
        ("in_voltage-voltage_scale", "7\n"),
        ("sampling_frequency", "250.000000\n"),
    ];
    let more = more.map(|(name, text)| (format!("{DEVICE}/{name}"), text));
    let more: Vec<_> = more.iter().map(|(name, text)| (&**name, *text)).collect();
    let root = machine(&more);
    let device = find(root.path(), None).unwrap();
    let of = |element: &str| device.scale(element).apply(10);
    let elements = ["in_accel_x", "in_voltage0", "in_voltage1", "in_temp", "in_count0"];
    assert_eq!(elements.map(of), [5.0, 20.0, 6.0, 10.0, 10.0]);
    let elements = ["in_voltage0-voltage1", "in_voltage0_i", "in_accel3_y"];
    assert_eq!(elements.map(of), [70.0, 20.0, 5.0]);
    let (_folder, journal) = journal(&root);
    let period_ns = |trigger| {
        let wanted = CaptureSpec { trigger: Some(trigger), length: 2, ..CaptureSpec::default() };
        IioCapture::begin(root.path(), &wanted, &journal).unwrap().period_ns
    };
    assert_eq!(period_ns("timer"), None, "the converter's rate is not that of a foreign trigger");
    fs::write(root.path().join("sys/bus/iio/devices/trigger0/name"), "kxcjk1013-dev0\n").unwrap();
    assert_eq!(period_ns("kxcjk1013-dev0"), Some(4e6));
    let text = root.path().join("sys/bus/iio/devices/trigger0/sampling_frequency");
    fs::write(text, "1000\n").unwrap();
    assert_eq!(period_ns("kxcjk1013-dev0"), Some(1e6));
}
