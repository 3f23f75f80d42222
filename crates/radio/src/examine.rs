//! What the radios that answered a search are, and whether this host works with each.

use std::net::SocketAddrV4;
use std::thread;
use std::time::{Duration, Instant};

use crate::RadioError;
use crate::deadline::deadline;
use crate::discover::DeviceInfo;
use crate::generation::{MpmGeneration, protocol_of};
use crate::rpc::{Map, RpcClient, RpcError, as_map, as_u64, as_version};

/// How many radios are asked at once.
const AT_ONCE: usize = 64;

/// The time for all of them together: a radio that hangs must not hold up those behind it.
const EXAMINATION_MAX: Duration = Duration::from_secs(5);

/// What a radio says of itself without a claim.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Examination {
    /// The version of its MPM, major and minor; `None` if it does not say.
    pub mpm: Option<(u64, u64)>,
    /// The version of its image's RFNoC protocol, major and minor; `None` if it does not say.
    pub protocol: Option<(u8, u8)>,
    /// The kind and version of its image; empty if it does not say.
    pub image: String,
    /// Why this host does not work with it, with the next step; `None` if nothing is known that
    /// prevents it.
    pub obstacle: Option<String>,
}

/// Asks each radio at its RPC port for its versions. What one of them does, or does not, changes
/// nothing for the others, and no radio is claimed.
pub fn examine(found: &[DeviceInfo], rpc_port: u16) -> Vec<Examination> {
    let until = deadline(EXAMINATION_MAX);
    let one = |info: &DeviceInfo| {
        let mut known = Examination::default();
        let address = SocketAddrV4::new(info.address, rpc_port);
        let outcome = ask(&mut known, address, &info.fields, until);
        known.obstacle = outcome.err().map(|error| error.to_string());
        known
    };
    let mut all = Vec::with_capacity(found.len());
    for some in found.chunks(AT_ONCE) {
        thread::scope(|scope| {
            let asked: Vec<_> = some.iter().map(|info| scope.spawn(move || one(info))).collect();
            all.extend(asked.into_iter().map(|asked| asked.join().unwrap_or_default()));
        });
    }
    all
}

/// Asks one radio; what it answers before a failure stays known.
fn ask(
    known: &mut Examination,
    address: SocketAddrV4,
    fields: &Map,
    until: Instant,
) -> Result<(), RadioError> {
    let left = |method: &str| match until.saturating_duration_since(Instant::now()) {
        Duration::ZERO => {
            let (method, timeout_ms) = (method.to_owned(), EXAMINATION_MAX.as_millis() as u64);
            Err(RpcError::Timeout { method, address, timeout_ms })
        }
        left => Ok(left),
    };
    left("get_mpm_compat_num")?;
    let mut rpc = RpcClient::connect(address)?;
    let mut call = |method: &str| {
        let timeout = left(method)?;
        let answer = rpc.call(method, Vec::new(), timeout)?;
        Ok::<_, RpcError>((answer, method.to_owned()))
    };
    let wrong = |(method, what): (String, &str)| RpcError::Protocol {
        method,
        address,
        what: what.to_owned(),
    };
    let (answer, method) = call("get_mpm_compat_num")?;
    let mpm = as_version(&answer).ok_or_else(|| wrong((method, "no version pair")))?;
    known.mpm = Some(mpm);
    let (answer, method) = call("get_proto_ver")?;
    let version = as_u64(&answer).and_then(|version| u16::try_from(version).ok());
    let version = version.ok_or_else(|| wrong((method, "no version number")))?;
    let [major, minor] = version.to_be_bytes();
    known.protocol = Some((major, minor));
    let described = call("get_device_info").ok().and_then(|(answer, _)| as_map(&answer));
    known.image = image(&described.unwrap_or_default(), fields);
    MpmGeneration::of(mpm)?;
    protocol_of(version, mpm).map(drop)
}

/// Describes an image by what the radio says over RPC and in its answer to the search.
fn image(described: &Map, fields: &Map) -> String {
    let part = |key: &str| {
        let value = described.get(key).or_else(|| fields.get(key))?;
        (!value.is_empty() && value != "n/a").then_some(value.as_str())
    };
    let parts: Vec<_> = ["fpga", "fpga_version"].into_iter().filter_map(part).collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    use rmpv::Value;

    use super::*;

    /// Serves the calls of one connection as a radio of these versions.
    fn serve(mut stream: TcpStream, mpm: (u64, u64), protocol: u64) {
        while let Ok(call) = rmpv::decode::read_value(&mut stream) {
            let method = call[2].as_str().unwrap();
            let answer = match method {
                "get_mpm_compat_num" => Value::Array(vec![mpm.0.into(), mpm.1.into()]),
                "get_proto_ver" => protocol.into(),
                "get_device_info" => Value::Map(vec![
                    ("fpga".into(), "XG".into()),
                    ("fpga_version".into(), "6.1".into()),
                ]),
                _ => panic!("{method} needs a claim"),
            };
            let reply = Value::Array(vec![1.into(), call[1].clone(), Value::Nil, answer]);
            rmpv::encode::write_value(&mut stream, &reply).unwrap();
        }
    }

    #[test]
    fn each_radio_is_judged_for_itself_whatever_the_others_do() {
        let addresses = [71, 72, 73, 74, 75, 76].map(|last| Ipv4Addr::new(127, 83, 0, last));
        let first = TcpListener::bind((addresses[0], 0)).unwrap();
        let port = first.local_addr().unwrap().port();
        let bind = |at: usize| TcpListener::bind((addresses[at], port)).unwrap();
        // An old one, one of today, one with a protocol of tomorrow, noise, the simulator of UHD
        // 4.11; and nobody.
        let listeners = [first, bind(1), bind(2), bind(3), bind(4)];
        let kinds = [
            Some(((4, 2), 0x0100)),
            Some(((5, 3), 0x0200)),
            Some(((8, 0), 0x0300)),
            None,
            Some(((7, 0), 0x0100)),
        ];
        let servers: Vec<_> = listeners
            .into_iter()
            .zip(kinds)
            .map(|(listener, kind)| {
                thread::spawn(move || {
                    let (mut stream, _) = listener.accept().unwrap();
                    match kind {
                        Some((mpm, protocol)) => serve(stream, mpm, protocol),
                        None => std::io::Write::write_all(&mut stream, &[0xC1; 64]).unwrap(),
                    }
                })
            })
            .collect();
        let info = |address| DeviceInfo { address, fields: Map::new() };
        let known = examine(&addresses.map(info), port);
        servers.into_iter().for_each(|server| server.join().unwrap());
        let versions: Vec<_> = known.iter().map(|one| (one.mpm, one.protocol)).collect();
        let good = |mpm, protocol| (Some(mpm), Some(protocol));
        assert_eq!(
            versions[..3],
            [good((4, 2), (1, 0)), good((5, 3), (2, 0)), good((8, 0), (3, 0))]
        );
        assert_eq!(known[0].image, "XG 6.1");
        assert_eq!([&known[0].obstacle, &known[1].obstacle], [&None, &None]);
        let obstacle = |at: usize| known[at].obstacle.clone().unwrap();
        assert!(obstacle(2).contains("the MPM version of the device is 8.0"), "{}", obstacle(2));
        assert!(obstacle(3).contains("\"get_mpm_compat_num\""), "{}", obstacle(3));
        assert!(obstacle(4).contains("is 1.0 behind MPM 7.0"), "{}", obstacle(4));
        assert!(obstacle(5).contains("cannot connect"), "{}", obstacle(5));
    }
}
