//! Tests of a device that accepts a rate which is not plausible.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{patient, radio};
use millstream_radio::Device;

/// The call whose answer is replaced.
const METHOD: &[u8] = b"db_0_set_catalina_clock_rate";

/// Forwards the bytes; `change` edits each piece before.
fn pump(mut from: TcpStream, mut to: TcpStream, mut change: impl FnMut(&mut [u8])) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        change(&mut bytes[..count]);
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    // The peer may have closed the connection.
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// Forwards between a host and `device`, and replaces the rate in the device's answer by another,
/// if there is one. An answer ends with its value, a float of eight bytes.
fn stand_between(device: SocketAddr, told: Arc<Mutex<Option<f64>>>) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for host in listener.incoming() {
            let (host, device) = (host.unwrap(), TcpStream::connect(device).unwrap());
            let (asked, told) = (Arc::new(AtomicBool::new(false)), told.clone());
            let (host_too, device_too) = (host.try_clone().unwrap(), device.try_clone().unwrap());
            let asks = asked.clone();
            std::thread::spawn(move || {
                pump(host, device, |bytes| {
                    let names = bytes.windows(METHOD.len()).any(|part| part == METHOD);
                    asks.fetch_or(names, Ordering::SeqCst);
                });
            });
            std::thread::spawn(move || {
                pump(device_too, host_too, |bytes| {
                    let other = *told.lock().unwrap();
                    if let (true, Some(rate)) = (asked.swap(false, Ordering::SeqCst), other) {
                        let value = bytes.last_chunk_mut::<8>().unwrap();
                        *value = rate.to_be_bytes();
                    }
                });
            });
        }
    });
    port
}

#[test]
fn a_rate_that_no_device_has_is_refused_and_the_rate_stays() {
    let (radio, mut args) = radio(patient());
    let told = Arc::new(Mutex::new(None));
    args.rpc_port = stand_between(radio.rpc_addr().into(), told.clone());
    let mut device = Device::open(args).unwrap();
    assert_eq!(device.set_rate(4e6).unwrap(), 4e6);
    for rate in [0.0, -1.0, 0.5, 1e300, f64::INFINITY, f64::NAN] {
        *told.lock().unwrap() = Some(rate);
        let answer = device.set_rate(5e6).map_err(|error| error.to_string());
        let error = answer.expect_err(&format!("{rate} is no rate"));
        assert!(error.contains("no usable rate"), "{rate}: {error}");
        assert_eq!(device.rate_hz(), 4e6, "what the device said about {rate} is not believed");
    }
    *told.lock().unwrap() = Some(5.04e6);
    assert_eq!(device.set_rate(5e6).unwrap(), 5.04e6, "the device may take a rate near it");
    *told.lock().unwrap() = None;
    assert_eq!(device.set_rate(5e6).unwrap(), 5e6);
}
