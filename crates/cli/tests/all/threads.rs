//! The threads of a receiving host, by its number of channels: few, named, and not more with more
//! channels of a radio.

use crate::common::{Radio, Running, command, eventually, is_alive};

/// Channels of one radio.
const EACH: usize = 4;
/// Channels that one `rx` receives at most.
const MOST: usize = 32;

/// The names of a process's threads, sorted.
fn threads(pid: u32) -> Vec<String> {
    let folder = std::fs::read_dir(format!("/proc/{pid}/task"));
    let each = folder.into_iter().flatten().flatten();
    // A thread may end meanwhile.
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
    let mut names: Vec<String> = each.filter_map(name).map(|name| name.trim().to_owned()).collect();
    names.sort();
    names
}

/// The inventory: the one that waits for the end, one that receives and converts, one that writes
/// the files, one that renews all claims, and one for each radio, which answers its control port.
fn expected(radios: usize) -> Vec<String> {
    let each = [("file", 1), ("millstream", 1), ("radio", 1), ("radio-claims", 1)];
    let all = each.into_iter().chain([("radio-control", radios)]);
    all.flat_map(|(name, count)| std::iter::repeat_n(name.to_owned(), count)).collect()
}

#[test]
fn a_host_has_four_threads_and_one_for_each_radio() {
    let folder = tempfile::tempdir().unwrap();
    // Time passes slowly, so that a busy machine is in time; but a second is short enough for
    // who waits for it.
    let more = ["--device", "n310", "--rx-antenna", "ramp", "--time-scale", "0.5"];
    let radios: Vec<Radio> = (0..MOST / EACH).map(|_| Radio::start(folder.path(), &more)).collect();
    for channels in [1, 2, 8, MOST] {
        let count = channels.div_ceil(EACH);
        let out = format!("{channels}.sc16");
        let list: Vec<String> = (0..channels).map(|channel| channel.to_string()).collect();
        let list = list.join(",");
        let given: Vec<String> = radios[..count].iter().map(Radio::args).collect();
        let mut args = vec!["rx", "--rate", "1e6", "--channel", &list, "--out", &out];
        given.iter().for_each(|given| args.extend(["--args", given]));
        // A host that came too late for the start ends: it may try again, over what it has left.
        args.push("--force");
        let has_all = |_| {
            let host = Running::start(command(folder.path(), &args));
            let is_complete = || threads(host.pid()) == expected(count);
            let mut complete = false;
            eventually("the threads of a host, or its end", || {
                complete = is_complete();
                complete || !is_alive(host.pid())
            });
            host.signal(libc::SIGINT);
            let outcome = host.wait();
            complete || {
                eprintln!("{channels} channels: {outcome:?}");
                false
            }
        };
        assert!((0..5).any(has_all), "{channels} channels: none of five hosts had its threads");
    }
}
