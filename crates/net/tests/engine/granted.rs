//! The guide's recipe without root: a broker that grants a few ports, and a program without rights
//! that asks for any port. Both are this program again, in a role.

use std::io::{BufRead, BufReader, Lines};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use millstream_link::port::PortOptions;
use millstream_link::rights::DirectSteps;
use millstream_link::rights::policy::GrantPolicy;
use millstream_link::rights::server::Server;
use millstream_link::xdp;
use millstream_testkit::netns::{PairOptions, VethPair};

/// The environment variable with a role and its argument.
const ROLE: &str = "MILLSTREAM_TEST_ROLE";

/// The first of the guide's ports; few are enough here.
const FIRST: u16 = 49_153;
const LAST: u16 = 49_155;

/// Plays the role of the environment variable; without one this is an empty test.
#[test]
fn play() {
    let Ok(role) = std::env::var(ROLE) else { return };
    match role.split_once(' ').expect("a role and its argument") {
        ("broker", path) => serve(Path::new(path)),
        ("client", path) => ask(path),
        other => panic!("no such role: {other:?}"),
    }
}

fn serve(path: &Path) {
    let mut policy = GrantPolicy::new("veth0", &[&xdp::RIGHTS]);
    (policy.users, policy.ports) = (vec![65_534], vec![FIRST..=LAST]);
    let mut server = Server::listen(path, policy, |family, interface, peer| {
        let client = rustix::process::Pid::from_raw(peer.pid);
        Ok(Box::new(DirectSteps::new(family, interface, client)?))
    })
    .unwrap();
    println!("\n@listening");
    loop {
        server.step(Duration::from_secs(1), &mut |event| eprintln!("{event}")).unwrap();
    }
}

fn ask(broker: &str) {
    let link = format!("xdp:veth0,mode=generic,queue=64,broker={broker}");
    let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
    let open = || millstream_net::open(&link, any, &PortOptions::default());
    // As many as there are, and one more.
    let ports: Vec<_> = (FIRST..=LAST + 1).map(|_| open()).collect();
    for port in &ports {
        match port {
            Ok(port) => println!("\n@{}", port.local.port()),
            Err(error) => println!("\n@{error}"),
        }
    }
}

/// A process in a role, and its output.
struct Actor(Child, Lines<BufReader<ChildStdout>>);

impl Actor {
    fn start(mut command: Command, role: &str) -> Self {
        command.args(["--exact", "granted::play", "--nocapture"]).env(ROLE, role);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self(child, lines)
    }

    fn says(&mut self) -> String {
        let said = self.1.by_ref().map_while(Result::ok);
        let mut said = said.filter_map(|line| line.strip_prefix('@').map(str::to_owned));
        said.next().expect("it says something")
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_program_without_rights_takes_the_ports_that_its_broker_grants() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root can act as a broker");
    }
    if Command::new("setpriv").arg("--version").output().is_err() {
        return eprintln!("skipped: there is no `setpriv` here (Debian package util-linux)");
    }
    let Some(pair) = VethPair::new(PairOptions::default()) else { return };
    // In a place where any user may run it.
    let folder = tempfile::tempdir().unwrap();
    let open_to_all = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open_to_all).unwrap();
    let program = folder.path().join("program");
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status();
    assert!(copied.unwrap().success());
    let program = program.to_str().unwrap();
    let path = folder.path().join("grant.sock");
    let mut broker =
        Actor::start(pair.right.command(program), &format!("broker {}", path.display()));
    assert_eq!(broker.says(), "listening");
    let mut command = pair.right.command("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]);
    command.args(["--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all", program]);
    let mut client = Actor::start(command, &format!("client {}", path.display()));
    let mut ports: Vec<_> = (FIRST..=LAST).map(|_| client.says()).collect();
    ports.sort_unstable();
    let granted: Vec<_> = (FIRST..=LAST).map(|port| port.to_string()).collect();
    assert_eq!(ports, granted);
    let error = client.says();
    assert!(error.contains("all UDP ports that the broker grants (49153-49155)"), "{error}");
}
