use super::*;
use millstream_host::ethtool::Channels;
use millstream_host::netlink::{
    NetlinkInterface, NetlinkRoute, RouteKind, XdpAttached, XdpFeatures, XdpMode,
};
use millstream_host::pci::Card;

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

#[test]
fn a_file_reads_and_writes_alike() {
    let config = full();
    assert_eq!(config.thread_of("eth2").unwrap().wait, Some(Wait::Spin));
    let text = toml::to_string_pretty(&config).unwrap();
    assert_eq!(parse(&text).unwrap(), config, "{text}");
    assert_eq!(parse("").unwrap(), Config::default());
}

/// Part of the schema is written by hand, so it must have exactly the keys of the structs.
#[test]
fn the_schema_has_the_keys_of_the_file() {
    let schema = schema();
    let keys = |value: &serde_json::Value| {
        let mut keys: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    };
    let mut config = full();
    config.interfaces[0].own = true;
    config.interfaces[0].device = Some("0000:03:00.0".to_owned());
    let file = serde_json::to_value(&config).unwrap();
    assert_eq!(keys(&file), keys(&schema["properties"]));
    for table in ["interface", "thread"] {
        assert_eq!(keys(&file[table][0]), keys(&schema["$defs"][table]["properties"]), "{table}");
    }
    let offloads = &schema["$defs"]["interface"]["properties"]["offloads"]["propertyNames"]["enum"];
    let names: Vec<_> = Offload::ALL.iter().map(|offload| offload.name()).collect();
    assert_eq!(offloads, &serde_json::json!(names));
}

#[test]
fn errors_name_place_key_and_remedy() {
    let eth = "[[interface]]\nname = \"eth1\"\nlink = \"xdp\"\n";
    let thread = "[[thread]]\nname = \"io\"\n";
    for (text, expected) in [
        (format!("{eth}mtv = 9000\n"), "radio.toml:4:1: interface[0].mtv: unknown field `mtv`"),
        (format!("{eth}mtu = \"big\"\n"), "radio.toml:4:7: interface[0].mtu: invalid type: string"),
        (format!("{eth}mtu = 9\n"), "radio.toml:4:7: interface[0].mtu: wants bytes from 68 to"),
        (format!("{eth}mtu = -1\n"), "`-1`, expected a whole number from 0 to 4294967295"),
        (format!("{eth}gateway = \"10.0\"\n"), "this is not an IPv4 address; write it like"),
        (format!("{eth}addresses = \"10.0.0.1/24\"\n"), "expected a list, like [\"a\", \"b\"]"),
        ("[interface]\nname = \"eth1\"\n".into(), "radio.toml:1:1: interface: there may be sev"),
        (format!("{eth}vlan = 4095\n"), "interface[0].vlan: wants an identifier from 1 to 4094"),
        (
            format!("{eth}mode = \"fast\"\n"),
            "interface[0].mode: wants one of: auto, zero-copy, native, generic, not `fast`",
        ),
        (
            format!("{eth}queues = \"3-1\"\n"),
            "interface[0].queues: wants all, one queue as in 0, or a range",
        ),
        (format!("{eth}channels = 0\n"), "interface[0].channels: an interface needs at least one"),
        (format!("{eth}steer = {{ x = 1 }}\n"), "interface[0].steer: `x` is not a UDP port"),
        (
            format!("{eth}addresses = [\"10.0.0.1\"]\n"),
            "interface[0].addresses: `10.0.0.1` is not an address",
        ),
        (
            format!("{eth}addresses = [\"10.0.0.1/24\", \"10.0.1.0/24\"]\n"),
            "radio.toml:4:29: interface[0].addresses[1]: 10.0.1.0/24 is not the address of one",
        ),
        (format!("{eth}own = true\n"), "interface[0].addresses: own = true wants exactly one"),
        (
            format!("{eth}addresses = [\"10.0.0.1/24\"]\ngateway = \"10.0.1.1\"\n"),
            "radio.toml:5:11: interface[0].gateway: 10.0.1.1 is on none of the networks",
        ),
        (format!("{eth}offloads = {{ lro = true }}\n"), "unknown variant `lro`, expected one of"),
        (format!("{eth}options = {{ cpu = \"1\" }}\n"), "`cpu` has a key of its own in the file"),
        (format!("{eth}{eth}"), "radio.toml:5:8: interface[1].name: `eth1` is listed twice: join"),
        (
            "[[interface]]\nname = \"a b\"\nlink = \"packet\"\n".into(),
            "radio.toml:2:8: interface[0].name: `a b` is not a valid interface name",
        ),
        (
            "[[interface]]\nname = \"e\"\nlink = \"packet\"\nmode = \"auto\"\n".into(),
            "interface[0].mode: is for link = \"xdp\" only: leave it out",
        ),
        ("[[interface]]\nname = \"e\"\n".into(), "missing field `link`"),
        (
            format!("{thread}interfaces = [\"e\"]\n"),
            "radio.toml:3:15: thread[0].interfaces[0]: there is no [[interface]] with name = \"e",
        ),
        (format!("{thread}priority = 100\n"), "thread[0].priority: wants a real-time priority"),
        (
            format!("{thread}wait = \"doze\"\n"),
            "thread[0].wait: `doze` is not a wait mode: use spin",
        ),
        ("[[thread]]\nname = \"a b\"\n".into(), "thread[0].name: `a b` is not a valid name"),
        ("[[interface]\n".into(), "radio.toml:1:13: "),
    ] {
        let error = parse(&text).expect_err(&text);
        assert!(error.contains(expected), "{text}\n→ {error}\nnot: {expected}");
        assert!(error.starts_with("radio.toml:") && !error.contains('\n'), "{error}");
    }
    let owners = format!("{eth}{thread}interfaces = [\"eth1\", \"eth1\"]\n");
    assert!(
        parse(&owners).unwrap_err().contains("`eth1` is listed in another thread already"),
        "{owners}"
    );
    let error = Config::read(Path::new("/nowhere/x.toml")).unwrap_err().to_string();
    assert!(error.ends_with("`millstream host net import` writes one"), "{error}");
}

#[test]
fn a_link_string_takes_from_the_file_what_it_does_not_say() {
    let config = full();
    let from_thread = "thread=radio,cpu=1,wait=spin,priority=50";
    for (link, expected) in [
        (
            "xdp:eth1,mode=generic,cpu=0",
            format!("xdp:eth1,mode=generic,cpu=0,queues=0-1,channels=2,vlan=7,io=thread,{}", {
                "thread=radio,wait=spin,priority=50,busy_poll_us=50"
            }),
        ),
        ("eth2", format!("packet:eth2,address=10.1.0.2/16,gateway=10.1.0.1,{from_thread}")),
        ("packet:eth1", format!("packet:eth1,vlan=7,io=thread,{from_thread}")),
        ("packet:eth2,io=inline", {
            "packet:eth2,io=inline,address=10.1.0.2/16,gateway=10.1.0.1".to_owned()
        }),
        ("packet:eth1,thread=other", "packet:eth1,thread=other,vlan=7,io=thread".to_owned()),
        (
            "packet:eth2,address=10.2.0.2/16,io=inline",
            "packet:eth2,address=10.2.0.2/16,io=inline".to_owned(),
        ),
        ("xdp:eth9,mode=generic", "xdp:eth9,mode=generic".to_owned()),
        ("udp", "udp".to_owned()),
        ("udp:gro=off", "udp:gro=off".to_owned()),
    ] {
        assert_eq!(process::expand_by(&config, link), expected);
    }
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
    FoundInterface {
        interface,
        driver: Some("ice".to_owned()),
        channels: Some((
            Channels { combined: 2, ..Channels::default() },
            Channels { combined: 4, ..Channels::default() },
        )),
        offloads: vec![(Offload::TransmitChecksum, false)],
        features: Some(XdpFeatures { native: true, parts: true, ..XdpFeatures::default() }),
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
    (other.interface.index, other.addresses, other.routes) = (3, vec![], vec![]);
    let means = ProcessRights { network: true, programs: true, broker: None };
    InterfaceSurvey { interfaces: vec![found("eth1"), other], cards: Vec::new(), means }
}

fn obstacles(config: &Config, survey: &InterfaceSurvey) -> Vec<String> {
    let all = dry_run(config, survey, &[0, 1]);
    let kept = all.into_iter().filter(|finding| finding.kind == FindingKind::Obstacle);
    kept.map(|finding| format!("{}: {}", finding.about, finding.text)).collect()
}

#[test]
fn a_system_that_fits_has_no_obstacles() {
    assert_eq!(obstacles(&full(), &survey()), Vec::<String>::new());
    let findings = dry_run(&full(), &survey(), &[0, 1]);
    let changes: Vec<_> = findings.iter().filter(|f| f.kind == FindingKind::Change).collect();
    assert_eq!(changes.len(), 1, "the steered port: {findings:?}");
    assert_eq!(findings[0].kind, FindingKind::Open);
    assert!(
        findings[0].text.starts_with("xdp:eth1,mode=native,queues=0-1,channels=2,"),
        "{findings:?}"
    );
}

#[test]
fn a_kernel_that_does_not_report_xdp_features_prevents_nothing() {
    let mut survey = survey();
    survey.interfaces[0].features = None;
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
    let text = change(&|_, survey| survey.interfaces[0].interface.mtu = 1500);
    assert_eq!(text, "eth1: its MTU is 1500, not 9000: `ip link set eth1 mtu 9000`");
    let text = change(&|_, survey| survey.interfaces[0].interface.up = false);
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
        survey.interfaces[0].interface.xdp = Some(attached);
    });
    assert!(text.starts_with("eth1: another XDP program is attached (program 17): "), "{text}");
    let text = change(&|config, _| config.interfaces[0].mode = Some("zero-copy".into()));
    assert_eq!(text, "eth1: the driver ice has no zero-copy: use mode = \"auto\"");
    let none = Some(XdpFeatures::default());
    let text = change(&|_, survey| survey.interfaces[0].features = none);
    assert!(text.starts_with("eth1: the driver ice runs no XDP programs: use mode"), "{text}");
    let text = change(&|config, _| config.interfaces[0].channels = Some(8));
    assert_eq!(text, "eth1: the interface can have at most 4 queues, not 8");
    let text = change(&|config, _| config.interfaces[0].queues = Some("0-2".into()));
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
        config.interfaces[0].options.insert("nonsense".into(), "1".into());
    });
    assert!(text.starts_with("eth1: ") && text.contains("nonsense=1"), "{text}");
    let text = change(&|config, _| config.threads[0].cpu = Some(5));
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
        let whole = process::expand_by(&config, &format!("{link},huge=off"));
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

#[test]
fn what_is_dpdks_is_said_whole() {
    let with = |rest: &str| parse(&format!("[[interface]]\nname = \"eth1\"\n{rest}"));
    let device = "device = \"0000:03:00.0\"";
    let address = "addresses = [\"10.0.0.1/24\"]";
    for (rest, reason) in [
        ("link = \"dpdk\"".to_owned(), "needs a device"),
        (format!("link = \"dpdk\"\n{device}"), "must be true with link = \"dpdk\""),
        (format!("link = \"xdp\"\n{device}\n{address}"), "is for link = \"dpdk\" only"),
    ] {
        let error = with(&rest).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
    with(&format!("link = \"dpdk\"\n{device}\nown = true\n{address}")).unwrap();
}
