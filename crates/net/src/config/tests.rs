use super::*;

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
    assert_eq!(config.thread_of("eth2").unwrap().wait, Some("spin".into()));
    let text = toml::to_string_pretty(&config).unwrap();
    assert_eq!(parse(&text).unwrap(), config, "{text}");
    assert_eq!(parse("").unwrap(), Config::default());
}

#[test]
fn options_stand_beside_the_other_keys_or_in_a_table_of_their_own() {
    let eth = "[[interface]]\nname = \"eth1\"\nlink = \"xdp\"\n";
    let read = |text: &str| parse(&format!("{eth}{text}")).unwrap().complete("eth1");
    let (beside, apart) = (read("huge = true\nvlan = 7\n"), read("options = { huge = \"on\" }\n"));
    assert_eq!(beside, "xdp:eth1,huge=on,vlan=7");
    assert_eq!(apart, "xdp:eth1,huge=on");
    let error = parse(&format!("{eth}huge = true\noptions = {{ huge = true }}\n")).unwrap_err();
    assert!(error.contains("interface[0].options.huge: is given twice"), "{error}");
}

#[test]
fn errors_name_place_key_and_remedy() {
    let eth = "[[interface]]\nname = \"eth1\"\nlink = \"xdp\"\n";
    let thread = "[[thread]]\nname = \"io\"\n";
    for (text, expected) in [
        (
            format!("{eth}mtv = 9000\n"),
            "radio.toml:4:7: interface[0].mtv: is not known; did you mean `mtu`?",
        ),
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
        (
            format!("{eth}options = {{ cpu = \"1\" }}\n"),
            "interface[0].options.cpu: is not an option here: write it as `cpu` of a [[thread]]",
        ),
        (format!("{eth}warp = 9\n"), "interface[0].warp: is not known; the options of every"),
        (format!("{eth}{eth}"), "radio.toml:5:8: interface[1].name: `eth1` is listed twice: join"),
        (
            "[[interface]]\nname = \"a b\"\nlink = \"packet\"\n".into(),
            "radio.toml:2:8: interface[0].name: `a b` is not a valid interface name",
        ),
        (
            "[[interface]]\nname = \"e\"\nlink = \"packet\"\nmode = \"auto\"\n".into(),
            "interface[0].mode: is not known; the options of every frame link are: io, thread",
        ),
        ("[[interface]]\nname = \"e\"\n".into(), "missing field `link`"),
        (
            format!("{thread}interfaces = [\"e\"]\n"),
            "radio.toml:3:15: thread[0].interfaces[0]: there is no [[interface]] with name = \"e",
        ),
        (
            format!("{thread}priority = 100\n"),
            "thread[0].priority: wants a priority from 1 to 99, not `100`",
        ),
        (
            format!("{thread}wait = \"doze\"\n"),
            "thread[0].wait: wants one of: spin, adaptive, park, not `doze`",
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
            "xdp:eth1,mode=generic,cpu=0,channels=2,io=thread,queues=0-1,vlan=7,busy_poll_us=50,\
             thread=radio,wait=spin,priority=50"
                .to_owned(),
        ),
        ("eth2", format!("packet:eth2,address=10.1.0.2/16,gateway=10.1.0.1,{from_thread}")),
        ("packet:eth1", format!("packet:eth1,io=thread,vlan=7,{from_thread}")),
        ("packet:eth2,io=inline", {
            "packet:eth2,io=inline,address=10.1.0.2/16,gateway=10.1.0.1".to_owned()
        }),
        ("packet:eth1,thread=other", "packet:eth1,thread=other,io=thread,vlan=7".to_owned()),
        (
            "packet:eth2,address=10.2.0.2/16,io=inline",
            "packet:eth2,address=10.2.0.2/16,io=inline".to_owned(),
        ),
        ("xdp:eth9,mode=generic", "xdp:eth9,mode=generic".to_owned()),
        ("udp", "udp".to_owned()),
        ("udp:gro=off", "udp:gro=off".to_owned()),
    ] {
        assert_eq!(config.complete(link), expected);
    }
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
