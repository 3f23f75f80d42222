//! Scheduling classes of an ordinary user whose limit was raised, as `rtprio` in
//! /etc/security/limits.d does.

use millstream_cpu::sched::{Class, ClassRefused, of_thread, set_current_thread};
use rustix::process::{Resource, Rlimit, Uid, getrlimit, setrlimit};
use rustix::thread::{gettid, set_thread_res_uid};

/// The user `nobody`.
const USER: u32 = 65_534;
const ALLOWED: u8 = 10;

/// The kernel keeps the user for each thread: only the test's own thread loses its rights. The
/// limit is that of the process, in which no other test looks at it.
#[test]
fn an_ordinary_user_has_the_priorities_up_to_its_limit() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can raise the limit and become another user");
        return;
    }
    let before = getrlimit(Resource::Rtprio);
    let current = Some(u64::from(ALLOWED));
    // A larger hard limit stays: who lowers it may not raise it again.
    let maximum = before.maximum.map(|maximum| maximum.max(ALLOWED.into()));
    if setrlimit(Resource::Rtprio, Rlimit { current, maximum }).is_err() {
        eprintln!("skipped: this container's root may not raise a limit (CAP_SYS_RESOURCE)");
        return;
    }
    let user = std::thread::spawn(|| {
        let user = Uid::from_raw(USER);
        set_thread_res_uid(user, user, user).unwrap();
        let class = || of_thread(gettid().as_raw_nonzero().get() as u32);
        let allowed = Class::Fifo(ALLOWED);
        let found = set_current_thread(allowed);
        if let Err(error) = &found {
            // A control group without time for real-time threads refuses root, too.
            assert!(matches!(error.reason, ClassRefused::Group { .. }), "{error}");
            eprintln!("skipped: {error}");
            return;
        }
        assert_eq!(class(), Some(allowed));
        for beyond in [Class::Fifo(ALLOWED + 1), Class::RoundRobin(99)] {
            let error = set_current_thread(beyond).unwrap_err();
            assert_eq!(error.reason, ClassRefused::Limit { allowed: u64::from(ALLOWED) });
            assert!(error.to_string().contains("priorities up to 10 (RLIMIT_RTPRIO)"), "{error}");
            assert_eq!(class(), Some(allowed), "a refused thread keeps its class");
        }
        set_current_thread(Class::Other).unwrap();
        assert_eq!(class(), Some(Class::Other));
    });
    let ended = user.join();
    setrlimit(Resource::Rtprio, before).unwrap();
    ended.unwrap();
}
