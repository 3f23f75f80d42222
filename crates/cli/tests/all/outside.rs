//! What comes from outside: connections without end, texts that would control a terminal, and
//! commands that would type into root's.

use crate::common::{Radio, Running, address, command, eventually, millstream};
use millstream_cpu::proc::Stat;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

/// Lets a process open no more descriptors than it has.
fn exhaust(pid: u32) {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() as u64;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let pid = pid as i32;
    // SAFETY: plain system calls with structures that outlive them.
    let status = unsafe {
        libc::prlimit(pid, libc::RLIMIT_NOFILE, std::ptr::null(), &mut limit);
        limit.rlim_cur = open;
        libc::prlimit(pid, libc::RLIMIT_NOFILE, &limit, std::ptr::null_mut())
    };
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
}

/// CPU time of a process so far, seconds.
fn cpu_s(pid: u32) -> f64 {
    let stat = Stat::read(format!("/proc/{pid}").as_ref()).unwrap();
    // Clock ticks of user and kernel; a tick is 10 ms on every architecture that we have.
    let ticks: u64 = [14, 15].into_iter().filter_map(|at| stat.field::<u64>(at)).sum();
    ticks as f64 / 100.0
}

/// Checks that connections which a process cannot take cost it no CPU.
fn rests(pid: u32, connect: impl Fn()) {
    exhaust(pid);
    (0..20).for_each(|_| connect());
    // A loop that spins uses all that it can get; the bound leaves room for the process's own work.
    let (before, began) = (cpu_s(pid), Instant::now());
    std::thread::sleep(Duration::from_secs(1));
    let share = (cpu_s(pid) - before) / began.elapsed().as_secs_f64();
    assert!(share < 0.2, "it uses {:.0} % of a CPU", share * 100.0);
}

#[test]
fn no_server_spins_when_descriptors_run_out() {
    let folder = tempfile::tempdir().unwrap();
    let radio = Radio::start(folder.path(), &[]);
    let held = std::cell::RefCell::new(Vec::new());
    let connect = |at: (std::net::IpAddr, u16)| held.borrow_mut().push(TcpStream::connect(at));
    // The emulated radio's RPC, at its usual port.
    rests(radio.running.pid(), || connect((radio.addr.into(), 49601)));
    // A dashboard.
    fs::write(folder.path().join("wait.toml"), WAITS).unwrap();
    let run = Running::start(command(folder.path(), &["run", "wait.toml", "--web", "0"]));
    let page: std::net::SocketAddr = run
        .line("dashboard http://")
        .trim_start_matches("dashboard http://")
        .trim_end_matches('/')
        .parse()
        .unwrap();
    rests(run.pid(), || connect((page.ip(), page.port())));
    // A broker, where this user may be one.
    if rustix::process::geteuid().is_root() {
        let path = folder.path().join("grant.sock");
        let socket = path.to_str().unwrap();
        let args = ["host", "grant", "--interface", "lo", "--user", "0", "--socket", socket];
        let grant = Running::start(command(folder.path(), &args));
        grant.line("granting ");
        let seqpacket = || {
            let kind = rustix::net::SocketType::SEQPACKET;
            let client = rustix::net::socket(rustix::net::AddressFamily::UNIX, kind, None).unwrap();
            let at = rustix::net::SocketAddrUnix::new(&path).unwrap();
            let _ = rustix::net::connect(&client, &at);
            std::mem::forget(client);
        };
        rests(grant.pid(), seqpacket);
    }
}

/// A graph that waits for datagrams and uses no CPU.
const WAITS: &str = r#"
[[block]]
name = "source"
type = "udp_source"
bind = "127.0.0.1:0"

[[block]]
name = "sink"
type = "null_sink"
item = "sc16"

[graph]
connections = ["source -> sink"]
"#;

/// Sets the title of the terminal, and erases it.
const HOSTILE: &str = "\x1b]0;owned\x07\x1b[2J\u{9b}2J";

/// Checks that nothing which a terminal obeys is in an output; colours and line ends may be.
fn is_harmless(what: &str, text: &str) {
    let control = |one: char| one.is_control() && one != '\n' && one != '\t';
    assert!(!text.contains(control), "{what}: {text:?}");
}

#[test]
fn no_name_or_answer_from_outside_controls_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Names of files that exist and that do not, options, and what a file contains.
    let file = format!("a{HOSTILE}.sc16");
    fs::write(folder.join(&file), [0; 400]).unwrap();
    let meta = format!(
        "{{\"global\":{{\"core:datatype\":{0},\"core:version\":{0},\"core:description\":{0}}}}}",
        serde_json::to_string(HOSTILE).unwrap()
    );
    fs::write(folder.join("b.sigmf-meta"), meta).unwrap();
    fs::write(folder.join("b.sigmf-data"), [0; 400]).unwrap();
    let name = serde_json::to_string(&format!("b{}", HOSTILE.replace('\u{9b}', ""))).unwrap();
    let graph = WAITS.replace("\"source\"", &name).replace("udp_source", "no_source");
    fs::write(folder.join("c.toml"), graph).unwrap();
    let (missing, args) = (format!("{HOSTILE}.toml"), format!("addr=127.0.0.1,{HOSTILE}=1"));
    for words in [
        vec!["inspect", &file, "--rate", "1e6"],
        vec!["inspect", &file, "--rate", HOSTILE],
        vec!["inspect", &missing],
        vec!["inspect", "b.sigmf-meta"],
        vec!["inspect", "b.sigmf-meta", "--json"],
        vec!["run", &missing],
        vec!["run", "c.toml"],
        vec!["run", "c.toml", "--json"],
        vec!["graph", "check", "c.toml"],
        vec!["probe", "--args", &args],
        vec!["probe", "--json", "--args", &args],
        vec![HOSTILE],
        vec!["rx", HOSTILE],
    ] {
        let outcome = millstream(folder, &words);
        is_harmless(&format!("{words:?}"), &format!("{}{}", outcome.stdout, outcome.stderr));
    }
}

#[test]
fn what_a_server_says_does_not_control_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind((address(), 0)).unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = write!(&stream, "INFO {{}}\r\n-ERR '{HOSTILE}'\r\n");
            let _ = std::io::copy(&mut &stream, &mut std::io::sink());
        }
    });
    let graph = r#"
[[block]]
name = "source"
type = "null_source"
item = "u8"

[[block]]
name = "head"
type = "head"
item = "u8"
count = 1000

[[block]]
name = "sink"
type = "nats_sink"
subject = "a"
linger_s = 0.5
server = "ADDRESS"

[graph]
connections = ["source -> head -> sink"]
"#;
    fs::write(folder.path().join("g.toml"), graph.replace("ADDRESS", &at.to_string())).unwrap();
    for more in [&[][..], &["--json"]] {
        let outcome = millstream(folder.path(), &[&["run", "g.toml"], more].concat());
        let all = format!("{}{}", outcome.stdout, outcome.stderr);
        is_harmless("run", &all);
        assert!(all.contains("owned"), "the server's words are shown: {all}");
    }
}

/// What the confined command does: it types a line into every terminal that it has.
#[test]
#[ignore = "the command that another test confines"]
fn the_typist() {
    let terminal = fs::File::options().read(true).write(true).open("/dev/tty").ok();
    let own = terminal.iter().map(AsRawFd::as_raw_fd);
    for descriptor in (0..3).chain(own) {
        for byte in b"evil\n" {
            // SAFETY: the byte outlives the call.
            unsafe { libc::ioctl(descriptor, libc::TIOCSTI, byte) };
        }
    }
    println!("typed");
}

#[test]
fn a_confined_command_types_nothing_into_roots_terminal() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root grants links");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let typist = folder.path().join("typist");
    fs::copy(std::env::current_exe().unwrap(), &typist).unwrap();
    let (mut master, mut slave) = (-1, -1);
    let none = std::ptr::null_mut();
    // SAFETY: the numbers outlive the call, and what it opens belongs to nobody else.
    let (master, slave) = unsafe {
        let status = libc::openpty(&mut master, &mut slave, none, none.cast(), none.cast());
        assert_eq!(status, 0);
        (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave))
    };
    let mut grant = Command::new(env!("CARGO_BIN_EXE_millstream"));
    grant.args(["host", "grant", "--interface", "lo", "--link", "packet", "--user", "nobody"]);
    grant.arg("--").arg(&typist);
    grant.args(["--exact", "outside::the_typist", "--ignored", "--nocapture"]);
    let ends = [0; 3].map(|_: i32| slave.try_clone().unwrap());
    let [stdin, stdout, stderr] = ends;
    grant.stdin(stdin).stdout(stdout).stderr(stderr);
    let own = || {
        // SAFETY: plain system calls, between fork and exec.
        let is_ours = unsafe { libc::setsid() >= 0 && libc::ioctl(0, libc::TIOCSCTTY, 0) == 0 };
        if is_ours { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: the closure makes async-signal-safe calls only.
    unsafe { grant.pre_exec(own) };
    let mut running = grant.spawn().unwrap();
    drop(grant);
    // The keys of a user reach the command meanwhile, and its output the user.
    let shown = std::thread::spawn({
        let mut master = fs::File::from(master.try_clone().unwrap());
        move || {
            let (mut all, mut bytes) = (Vec::new(), [0; 4096]);
            while !String::from_utf8_lossy(&all).contains("typed") {
                let count = master.read(&mut bytes).unwrap();
                all.extend_from_slice(&bytes[..count]);
            }
        }
    });
    eventually("the end of the command", || running.try_wait().unwrap().is_some());
    assert!(running.wait().unwrap().success());
    shown.join().unwrap();
    let mut waiting: libc::c_int = 0;
    // SAFETY: the number outlives the call.
    let status = unsafe { libc::ioctl(slave.as_raw_fd(), libc::FIONREAD, &mut waiting) };
    assert_eq!((status, waiting), (0, 0), "characters wait for root's shell");
}
