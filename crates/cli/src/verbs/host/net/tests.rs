//! Tests of imports and dry runs.

use super::check::{CHANGE, OBSTACLE, dry_run};
use super::import::{import, import_for_dpdk};
use super::schema::schema;
use millstream_host::ethtool::{Channels, Offload};
use millstream_host::netlink::{
    NetlinkInterface, NetlinkRoute, RouteKind, XdpAttached, XdpFeatures, XdpMode,
};
use millstream_host::pci::Card;
use millstream_link::InterfaceState;
use millstream_net::config::{Config, FoundInterface, InterfaceSurvey, LinkName, ProcessRights};
use serde_json::Value;
use std::path::Path;

const FULL: &str = r#"
[[interface]]
name = "eth1"
link = "xdp"
io = "thread"
mode = "native"
queues = "0-1"
channels = 2
mtu = 9000
addresses = ["192.168.10.1/24"]
gateway = "192.168.10.254"
vlan = 7

[interface.steer]
49153 = 1

[interface.offloads]
transmit-checksum = false

[interface.options]
busy_poll_us = "50"

[[interface.routes]]
to = "10.0.0.0/8"
via = "192.168.10.253"

[[interface]]
name = "eth2"
link = "packet"
own = true
addresses = ["10.1.0.2/16"]
gateway = "10.1.0.1"

[[thread]]
name = "radio"
cpu = 1
wait = "spin"
priority = 50
interfaces = ["eth1", "eth2"]
"#;

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(text, Path::new("radio.toml")).map_err(|error| error.to_string())
}

fn full() -> Config {
    parse(FULL).unwrap()
}

fn say(config: &mut Config, option: &str, value: &str) {
    config.interfaces[0].said.insert(option.into(), value.into());
}

/// Every key that a file may have is in the schema with its meaning, and no other is.
#[test]
fn the_schema_has_the_keys_of_the_file() {
    let schema = schema();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let mut config = full();
    config.interfaces[0].own = true;
    config.interfaces[0].device = Some("0000:03:00.0".to_owned());
    let file = serde_json::to_value(&config).unwrap();
    let interface = &schema["$defs"]["interface"];
    let all = interface["allOf"].as_array().unwrap();
    let of_xdp = all.iter().find(|one| one["if"]["properties"]["link"]["const"] == "xdp");
    let options = &of_xdp.unwrap()["then"]["properties"];
    for key in keys(&file["interface"][0]) {
        let found = interface["properties"].get(&key).or_else(|| options.get(&key));
        assert!(found.is_some_and(|found| found["description"].is_string()), "{key}");
    }
    assert!(options["mode"]["enum"].as_array().unwrap().contains(&"native".into()));
    assert!(options.get("cpu").is_none() && options.get("channels").is_none());
    assert_eq!(interface["required"], Value::from_iter(["name", "link"]));
    let route = &file["interface"][0]["routes"][0];
    assert_eq!(keys(route), keys(&schema["$defs"]["route"]["properties"]));
    let mut thread = [keys(&file["thread"][0]), keys(&schema["$defs"]["thread"]["properties"])];
    thread.iter_mut().for_each(|keys| keys.sort());
    assert_eq!(thread[0], thread[1]);
    assert_eq!(schema["$defs"]["thread"]["properties"]["cpu"]["anyOf"][0]["maximum"], 1023);
}

fn found(name: &str) -> FoundInterface {
    let interface = NetlinkInterface {
        index: 2,
        name: name.to_owned(),
        mac: Some([2, 0, 0, 0, 0, 1]),
        mtu: 9000,
        up: true,
        running: true,
        loopback: false,
        kind: None,
        receive_queues: 4,
        transmit_queues: 4,
        xdp: None,
    };
    let route = |destination: [u8; 4], prefix, via: [u8; 4]| NetlinkRoute {
        destination: destination.into(),
        prefix,
        gateway: Some(via.into()),
        interface: Some(2),
        source: None,
        metric: 0,
        kind: RouteKind::Unicast,
    };
    let state = InterfaceState {
        interface,
        driver: Some("ice".to_owned()),
        channels: Some((
            Channels { combined: 2, ..Channels::default() },
            Channels { combined: 4, ..Channels::default() },
        )),
        features: Some(XdpFeatures { native: true, parts: true, ..XdpFeatures::default() }),
    };
    FoundInterface {
        state,
        offloads: vec![(Offload::TransmitChecksum, false)],
        addresses: vec!["192.168.10.1/24".parse().unwrap()],
        routes: vec![
            route([0; 4], 0, [192, 168, 10, 254]),
            route([10, 0, 0, 0], 8, [192, 168, 10, 253]),
        ],
        steers: true,
        device: None,
    }
}

fn survey() -> InterfaceSurvey {
    let mut other = found("eth2");
    (other.state.interface.index, other.addresses, other.routes) = (3, vec![], vec![]);
    let means = ProcessRights { network: true, programs: true, broker: None };
    InterfaceSurvey { interfaces: vec![found("eth1"), other], cards: Vec::new(), means }
}

fn obstacles(config: &Config, survey: &InterfaceSurvey) -> Vec<String> {
    let all = dry_run(config, survey, &[0, 1]);
    let kept = all.into_iter().filter(|finding| finding.kind == OBSTACLE);
    kept.map(|finding| format!("{}: {}", finding.about, finding.text)).collect()
}

#[test]
fn a_system_that_fits_has_no_obstacles() {
    assert_eq!(obstacles(&full(), &survey()), Vec::<String>::new());
    let findings = dry_run(&full(), &survey(), &[0, 1]);
    let changes: Vec<_> = findings.iter().filter(|f| f.kind == CHANGE).collect();
    assert_eq!(changes.len(), 1, "the steered port: {findings:?}");
    assert_eq!(findings[0].kind, "open");
    assert!(
        findings[0].text.starts_with("xdp:eth1,channels=2,io=thread,mode=native,queues=0-1,"),
        "{findings:?}"
    );
}

#[test]
fn a_kernel_that_does_not_report_xdp_features_prevents_nothing() {
    let mut survey = survey();
    survey.interfaces[0].state.features = None;
    assert_eq!(obstacles(&full(), &survey), Vec::<String>::new());
    let findings = dry_run(&full(), &survey, &[0, 1]);
    let note = "does not report what the driver ice can do for XDP";
    assert!(findings.iter().any(|finding| finding.text.contains(note)), "{findings:?}");
}

#[test]
fn each_obstacle_is_named_with_its_remedy() {
    let change = |change: &dyn Fn(&mut Config, &mut InterfaceSurvey)| {
        let (mut config, mut survey) = (full(), survey());
        change(&mut config, &mut survey);
        obstacles(&config, &survey).join("\n")
    };
    let text = change(&|_, survey| survey.interfaces[0].state.interface.mtu = 1500);
    assert_eq!(text, "eth1: its MTU is 1500, not 9000: `ip link set eth1 mtu 9000`");
    let text = change(&|_, survey| survey.interfaces[0].state.interface.up = false);
    assert_eq!(text, "eth1: the interface is down: `ip link set eth1 up`");
    let text = change(&|_, survey| drop(survey.interfaces.remove(0)));
    assert_eq!(text, "eth1: there is no such interface here; there are: eth2");
    let text = change(&|_, survey| {
        survey.means = ProcessRights { broker: None, ..ProcessRights::default() }
    });
    assert!(text.contains("run as root, or have root run `millstream host grant`"), "{text}");
    let text = change(&|_, survey| {
        survey.means = ProcessRights { broker: Some("/run/x".into()), ..ProcessRights::default() };
    });
    // The broker has the rights for links only.
    assert!(text.starts_with("eth1: cannot set ") && text.lines().count() == 1, "{text}");
    assert!(text.ends_with("that needs CAP_NET_ADMIN"), "{text}");
    let text = change(&|_, survey| {
        let attached = XdpAttached { mode: XdpMode::Native, program_id: Some(17) };
        survey.interfaces[0].state.interface.xdp = Some(attached);
    });
    assert!(text.starts_with("eth1: another XDP program is attached (program 17): "), "{text}");
    let text = change(&|config, _| say(config, "mode", "zero-copy"));
    assert_eq!(text, "eth1: the driver ice has no zero-copy: use mode = \"auto\"");
    let none = Some(XdpFeatures::default());
    let text = change(&|_, survey| survey.interfaces[0].state.features = none);
    assert!(text.starts_with("eth1: the driver ice runs no XDP programs: use mode"), "{text}");
    let text = change(&|config, _| config.interfaces[0].channels = Some(8));
    assert_eq!(text, "eth1: the interface can have at most 4 queues, not 8");
    let text = change(&|config, _| say(config, "queues", "0-2"));
    assert_eq!(text, "eth1: there is no queue 2: the interface has 2, 0 to 1");
    let text = change(&|_, survey| survey.interfaces[0].offloads.clear());
    assert_eq!(text, "eth1: the driver of the interface has no offload transmit-checksum");
    let text = change(&|_, survey| survey.interfaces[0].steers = false);
    assert_eq!(text, "eth1: its driver cannot steer a UDP port to a queue: leave `steer` out");
    let text = change(&|_, survey| survey.interfaces[0].addresses.clear());
    assert!(text.contains("`ip addr add 192.168.10.1/24 dev eth1`"), "{text}");
    let text = change(&|_, survey| survey.interfaces[0].routes.clear());
    assert!(text.contains("`ip route add 0.0.0.0/0 via 192.168.10.254 dev eth1`"), "{text}");
    assert!(text.contains("`ip route add 10.0.0.0/8 via 192.168.10.253 dev eth1`"), "{text}");
    let text = change(&|_, survey| {
        survey.interfaces[1].addresses.push("10.1.0.2/16".parse().unwrap());
    });
    assert_eq!(text, "eth2: the kernel has 10.1.0.2/16, too: `ip addr del 10.1.0.2/16 dev eth2`");
    let text = change(&|config, _| {
        say(config, "nonsense", "1");
    });
    assert!(text.starts_with("eth1: ") && text.contains("nonsense=1"), "{text}");
    let text = change(&|config, _| config.threads[0].cpu = Some("5".into()));
    assert_eq!(text, "thread radio: may not run on CPU 5: allowed are [0, 1]");
}

#[test]
fn an_import_checks_clean() {
    let config = import(&survey(), &["eth1".to_owned()]).unwrap();
    let eth1 = &config.interfaces[0];
    assert_eq!(
        (eth1.link, eth1.mtu, eth1.channels),
        (LinkName::of("xdp").unwrap(), Some(9000), Some(2))
    );
    assert_eq!(eth1.gateway, Some([192, 168, 10, 254].into()));
    assert_eq!(eth1.routes.len(), 1);
    let text = toml::to_string_pretty(&config).unwrap();
    assert_eq!(parse(&text).unwrap(), config);
    assert_eq!(obstacles(&config, &survey()), Vec::<String>::new());
    assert_eq!(import(&survey(), &["eth7".to_owned()]), Err("eth7".to_owned()));
    let all = import(&survey(), &[]).unwrap();
    assert_eq!(all, config, "the other one has no address");
}

/// Before DPDK takes the interface the kernel has it, afterwards only the bus does.
#[test]
fn an_import_for_dpdk_goes_on_as_the_kernel_ends() {
    const CARD: &str = "0000:03:00.0";
    let mut before = survey();
    before.interfaces[0].device = Some(CARD.to_owned());
    let names = ["eth1".to_owned()];
    let config = import_for_dpdk(&before, &names).unwrap();
    let text = toml::to_string_pretty(&config).unwrap();
    assert_eq!(parse(&text).unwrap(), config, "{text}");
    let said = "mtu=9000,address=192.168.10.1/24,gateway=192.168.10.254";
    for link in ["eth1", "dpdk:eth1", &format!("dpdk:{CARD}")] {
        let whole = config.complete(&format!("{link},huge=off"));
        assert_eq!(whole, format!("dpdk:{CARD},huge=off,{said}"));
    }
    let card = |driver: &str| Card { address: CARD.to_owned(), driver: Some(driver.to_owned()) };
    before.cards = vec![card("ice")];
    let text = obstacles(&config, &before).join("\n");
    assert!(text.contains("ice has the device: `ip link set eth1 down`"), "{text}");
    let mut taken = survey();
    taken.interfaces.remove(0);
    taken.cards = vec![card("vfio-pci")];
    assert_eq!(obstacles(&config, &taken), Vec::<String>::new());
    taken.cards.clear();
    assert!(obstacles(&config, &taken)[0].contains("there is no network device"));
    let error = import_for_dpdk(&before, &["eth2".to_owned()]).unwrap_err();
    assert!(error.contains("eth2 is on no PCI device"), "{error}");
}
