//! `millstream rx --dest`: samples that go to another host.

use crate::common::{Radio, Running, command};
use millstream_dsp::chunks::Chunks;
use std::net::UdpSocket;

#[test]
fn the_radio_sends_every_sample_to_another_host_with_dest() {
    let folder = tempfile::tempdir().unwrap();
    let radio = Radio::start(folder.path(), &["--rx-antenna", "ramp"]);
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let [first, second] = sockets.each_ref().map(|socket| socket.local_addr().unwrap());
    let args = radio.args();
    let run = |more: &[&str]| {
        let rx = ["rx", "--json", "--args", &args, "--rate", "1e6", "--nsamps", "20000"];
        Running::start(command(folder.path(), &[&rx[..], more].concat())).wait()
    };
    let dest = format!("{first},{second}");
    for full in [false, true] {
        let more = ["--channel", "0,1", "--dest", &dest];
        let more = if full { [&more[..], &["--full-packets"]].concat() } else { more.to_vec() };
        let results = &run(&more).succeeds().json()["results"];
        assert_eq!(results["overruns"], 0);
        let channels = results["channels"].as_array().unwrap();
        for channel in channels {
            assert_eq!((&channel["samples"], &channel["exact"]), (&20_000.into(), &false.into()));
        }
        let start = channels[0]["start_ticks"].as_u64().unwrap() as u32;
        let header = if full { 16 } else { 0 };
        for socket in &sockets {
            // A busy machine may still be about to send some of it.
            socket.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
            let (mut buffer, mut heard) = ([0; 9000], Vec::new());
            while heard.len() < 20_000 * 4 {
                let length = socket.recv(&mut buffer).unwrap_or_else(|error| {
                    let table = std::fs::read_to_string("/proc/self/net/udp").unwrap();
                    panic!("{error} after {} bytes: {results} {table}", heard.len())
                });
                heard.extend_from_slice(&buffer[header..length]);
            }
            let heard = heard.in_chunks().0.iter().map(|sample| u32::from_le_bytes(*sample));
            assert!(heard.eq((0..20_000).map(|index| start.wrapping_add(index))), "{full}");
        }
    }
    run(&["--dest", &dest]).fails(1, "--dest names 2 destinations for 1 channels");
    let one = ["--dest", &first.to_string()];
    for more in [&["--out", "x.sc16"][..], &["--force"], &["--buffer", "8"], &["--max-lost", "0"]] {
        run(&[&one[..], more].concat()).fails(2, "cannot be used with");
    }
    let outcome = run(&[&one[..], &["--packet-samples", "100"]].concat());
    assert_eq!(outcome.succeeds().json()["results"]["channels"][0]["samples_per_packet"], 100);
    run(&[]).fails(2, "--out <FILE>");
    radio.stop();
}
