//! Batches whose processes are killed or interrupted, and several at once.

use super::{Place, text};
use crate::common::{Running, command, eventually, is_alive, names};
use std::time::Duration;

/// Children of a driver.
fn workers(driver: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{driver}/task/{driver}/children"));
    list.unwrap_or_default().split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// MILLSTREAM_KILLS=50 kills fifty times.
#[test]
fn no_result_is_lost_or_doubled_whoever_is_killed() {
    let kills = std::env::var("MILLSTREAM_KILLS").map_or(4, |kills| kills.parse::<u8>().unwrap());
    let seed = std::env::var("MILLSTREAM_SEED").map_or(1, |seed| seed.parse().unwrap());
    println!("MILLSTREAM_SEED={seed}");
    let mut drawn: u64 = seed;
    let mut draw = |below: u64| {
        // SplitMix64.
        drawn = drawn.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = (drawn ^ (drawn >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    };
    // Enough tasks that most are left at the last kill.
    let recordings = kills.saturating_mul(4).clamp(16, 250);
    let place = Place::new(recordings, 20_000, "[outputs]\n[sweep]\nspeed = [1e6, 1.1e6, 1.2e6]\n");
    let run = ["batch", "run", "b.toml", "--workers", "3"];
    let mut driver = Running::start(command(&place.path, &run));
    for _ in 0..kills {
        std::thread::sleep(Duration::from_millis(draw(120)));
        let workers = workers(driver.pid());
        if draw(2) == 0 && !workers.is_empty() {
            signal(workers[draw(workers.len() as u64) as usize], libc::SIGKILL);
            continue;
        }
        signal(driver.pid(), libc::SIGKILL);
        eventually("the end of the driver", || !is_alive(driver.pid()));
        for pid in workers {
            eventually("the end of its workers", || !is_alive(pid));
        }
        driver = Running::start(command(&place.path, &run));
    }
    // Tasks whose worker was killed failed in that run.
    let outcome = driver.wait();
    if outcome.status != Some(0) {
        let line = outcome.stderr.lines().find(|line| line.starts_with("failed  "));
        let line = line.unwrap_or_else(|| panic!("{outcome:?}"));
        assert!(line.contains("was killed by signal 9: run the batch again"), "{line}");
    }
    place.batch(&["run", "b.toml"]).succeeds();
    place.is_whole();
}

#[test]
fn two_drivers_share_the_tasks() {
    let place = Place::new(6, 20_000, "[outputs]\n");
    let run = ["batch", "run", "b.toml", "--workers", "2", "--json"];
    let drivers = [(); 2].map(|()| Running::start(command(&place.path, &run)));
    let results = drivers.map(|driver| driver.wait().succeeds().json()["results"].clone());
    for result in &results {
        assert_eq!((&result["done"], &result["tasks"]), (&6.into(), &6.into()), "{result}");
    }
    place.is_whole();
}

/// Two tasks of two seconds each.
fn slow_place() -> Place {
    Place::new(2, 200_000, "[outputs]\n[parameters]\nspeed = 1e5\n")
}

/// Waits until a task runs its graph; returns its name.
fn running_task(place: &Place) -> String {
    let work = place.results().join("work");
    let mut found = None;
    eventually("a task that runs", || {
        let entries = std::fs::read_dir(&work).into_iter().flatten().flatten();
        let runs = |entry: &std::fs::DirEntry| entry.path().join("copy.cf32.part").exists();
        found = entries.into_iter().find(runs).map(|entry| entry.file_name());
        found.is_some()
    });
    found.unwrap().into_string().unwrap()
}

fn signal(pid: u32, signal: i32) {
    // SAFETY: plain system call; the process may have ended.
    unsafe { libc::kill(pid as i32, signal) };
}

#[test]
fn an_interrupted_driver_ends_in_order_and_can_go_on() {
    let place = slow_place();
    let run = ["batch", "run", "b.toml", "--workers", "1"];
    let driver = Running::start(command(&place.path, &run));
    running_task(&place);
    driver.signal(libc::SIGINT);
    let outcome = driver.wait();
    outcome.fails(1, "of 2 tasks were done: run the command again to go on");
    assert!(!outcome.stderr.contains("failed  "), "{outcome:?}");
    assert_eq!(names(&place.results().join("work")), [""; 0], "no half result is left");
    assert!(!place.results().join("failed").exists());
    place.batch(&["run", "b.toml", "--workers", "2"]).succeeds();
    place.is_whole();
}

/// Ctrl-C in a terminal signals the workers, too: also one that has just begun.
#[test]
fn an_interrupt_of_the_whole_group_is_no_failure() {
    use std::os::unix::process::CommandExt;
    let place = Place::new(2, 200_000, "[outputs]\n[parameters]\nspeed = 1e4\n");
    for delay in [0, 4, 8, 16] {
        let mut run = command(&place.path, &["batch", "run", "b.toml", "--workers", "2"]);
        let driver = Running::start({
            run.process_group(0);
            run
        });
        eventually("its workers", || workers(driver.pid()).len() == 2);
        std::thread::sleep(Duration::from_millis(delay));
        // SAFETY: plain system call on a group whose leader has not been waited for.
        assert_eq!(unsafe { libc::kill(-(driver.pid() as i32), libc::SIGINT) }, 0);
        let outcome = driver.wait();
        outcome.fails(1, "of 2 tasks were done: run the command again to go on");
        assert!(!outcome.stderr.contains("failed  "), "{outcome:?}");
        assert!(!place.results().join("failed").exists());
    }
}

#[test]
fn a_task_has_one_process_at_a_time() {
    let place = slow_place();
    let name = text(&place.tasks()[0], "name");
    let first = Running::start(command(&place.path, &["batch", "task", "b.toml", &name]));
    assert_eq!(running_task(&place), name);
    // However slow this machine is, it runs until the others have looked.
    signal(first.pid(), libc::SIGSTOP);
    assert_eq!(text(&place.tasks()[0], "state"), "running");
    let second = place.batch(&["task", "b.toml", &name[..6]]);
    second.fails(75, &format!("another process runs the task {name}: wait for its end"));
    signal(first.pid(), libc::SIGCONT);
    first.wait().succeeds();
    let third = place.batch(&["task", "b.toml", &name]);
    assert!(third.succeeds().stdout.contains("is done"), "{third:?}");
    place.batch(&["run", "b.toml"]).succeeds();
    place.is_whole();
}
