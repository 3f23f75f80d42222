//! Streaming without rights, and the leftovers of killed processes: on veth pairs in separate
//! namespaces, with separate processes.
//!
//! The processes are this test program again, in one of its roles (`role`).

mod role;
mod scene;

use millstream_host::ethtool::Ethtool;
use millstream_host::journal;
use millstream_testkit::netns::PairOptions;

use scene::{Scene, status_field, wait_until};

const ONE_QUEUE: PairOptions = PairOptions { mtu: 1500, queues: 1 };
const FOUR_QUEUES: PairOptions = PairOptions { mtu: 1500, queues: 4 };

#[test]
fn an_unprivileged_process_streams_with_descriptors_from_a_broker() {
    for (link, queues) in [
        ("xdp:veth0,mode=native", ONE_QUEUE),
        ("xdp:veth0,mode=generic", ONE_QUEUE),
        ("xdp:veth0,queues=all", FOUR_QUEUES),
        ("xdp:veth0,tx_queues=4", FOUR_QUEUES),
        ("packet:veth0", ONE_QUEUE),
    ] {
        let Some(scene) = Scene::new(queues) else { return };
        let _broker = scene.broker();
        let mut client = scene.client(link, true);
        let _load = scene.load();
        client.streams(10_000);
        let status = client.status();
        println!("{link}: {}", client.told());
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(status_field(&status, set), "0000000000000000", "{set}");
        }
        assert_eq!(status_field(&status, "Uid"), "65534 65534 65534 65534");
        assert_eq!(status_field(&status, "NoNewPrivs"), "1");
        client.streams(20_000);
        assert_eq!(scene.is_attached(), link.starts_with("xdp"));
        client.ends();
        wait_until("the program is gone", || !scene.is_attached());
    }
}

#[test]
fn a_killed_client_leaves_nothing_and_the_next_has_the_interface_at_once() {
    for (link, queues) in [("xdp:veth0", ONE_QUEUE), ("xdp:veth0,tx_queues=4", FOUR_QUEUES)] {
        let Some(scene) = Scene::new(queues) else { return };
        let _broker = scene.broker();
        let _load = scene.load();
        for _ in 0..3 {
            let mut client = scene.client(link, true);
            client.streams(5_000);
            client.kill();
            wait_until("the program is gone", || !scene.is_attached());
        }
    }
}

#[test]
fn a_killed_broker_does_not_stop_a_stream_and_leaves_nothing_behind_it() {
    let Some(scene) = Scene::new(ONE_QUEUE) else { return };
    let broker = scene.broker();
    let _load = scene.load();
    let mut client = scene.client("xdp:veth0", true);
    client.streams(5_000);
    broker.kill();
    client.streams(20_000);
    assert!(scene.is_attached());
    client.kill();
    wait_until("the program is gone", || !scene.is_attached());
    // The killed process's socket does not prevent the next start.
    let _broker = scene.broker();
    scene.client("xdp:veth0", true).streams(1_000);
}

#[test]
fn a_killed_process_leaves_settings_that_the_next_start_puts_back() {
    let Some(scene) = Scene::new(FOUR_QUEUES) else { return };
    let queues = || scene.inside(|| Ethtool::open().unwrap().channels("veth0").unwrap().0);
    let before = queues();
    assert_eq!(before.receiving(), 4);
    let _load = scene.load();
    let mut client = scene.client("xdp:veth0,channels=2,rights=direct", false);
    client.streams(5_000);
    println!("{}", client.told());
    assert_eq!(queues().receiving(), 2);
    client.kill();
    wait_until("the program is gone", || !scene.is_attached());
    // Any start on this machine restores it; this one, unless another came before it.
    let recovered = scene.inside(|| journal::recover().unwrap());
    println!("{recovered:?}");
    wait_until("the queues are put back", || queues() == before);
    let line = "veth0: the queues (4 rx, 4 tx, 0 combined)";
    let others = recovered.undone.iter().all(|undone| undone != line);
    println!("{}", if others { "somebody else put them back" } else { line });
    let mut client = scene.client("xdp:veth0,channels=1,rights=direct", false);
    client.streams(1_000);
    client.ends();
    assert_eq!(queues(), before, "put back in order");
}

#[test]
fn frames_on_a_queue_that_nobody_watches_are_explained() {
    let Some(scene) = Scene::new(FOUR_QUEUES) else { return };
    let (mut link, unwatched) = scene.inside(|| {
        let mut link = role::open("xdp:veth0,queues=0", scene.address());
        // The kernel's hash decides; some of these flows use other queues.
        let sender = scene.sender_on_another_queue(&mut *link);
        (link, sender)
    });
    let text = link.explain().expect("something to explain");
    println!("{text}");
    let queue = unwatched;
    assert!(text.contains(&format!("queue {queue}")) && text.contains("queue 0 only"), "{text}");
    assert!(text.contains("open it with queues=all"), "{text}");
    assert!(link.counters().unwatched > 0);
    drop(link);
    // With every queue watched the same flows all arrive.
    scene.inside(|| {
        let mut link = role::open("xdp:veth0,queues=all", scene.address());
        for _ in 0..64 {
            scene.send_from_new_port(10);
        }
        let mut got = 0;
        wait_until("every frame of every flow", || {
            got += role::take(&mut *link);
            got >= 640
        });
        assert_eq!((got, link.counters().unwatched, link.explain()), (640, 0, None));
    });
}

#[test]
fn nobody_without_a_broker_is_told_both_ways_out() {
    let Some(scene) = Scene::new(ONE_QUEUE) else { return };
    let error = scene.client("xdp:veth0", true).fails();
    println!("{error}");
    assert!(error.contains(
        "this process has no rights to open the link xdp on veth0: this process lacks CAP_NET_RAW"
    ));
    assert!(error.contains("no broker listens at"), "{error}");
    assert!(error.contains("sudo millstream host grant --interface veth0 --user 65534"), "{error}");
    assert!(error.contains("sudo setcap cap_net_raw"), "{error}");
}
