//! Limits of this process.

#![allow(unsafe_code)] // Safety: each call passes plain values that live on the stack.

use super::held::Held;
use firsttouch::{Allocator, Request};

#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = libc::c_int;

/// Sets the soft limit of a resource, to the hard limit at most.
pub fn set(which: Resource, bytes: usize) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel reads and writes one rlimit.
    unsafe {
        assert_eq!(libc::getrlimit(which, &mut limit), 0);
        limit.rlim_cur = limit.rlim_max.min(bytes as libc::rlim_t);
        assert_eq!(libc::setrlimit(which, &limit), 0, "{}", std::io::Error::last_os_error());
    }
}

/// Law 7 where a limit is set: with nothing in use, a request is not refused for what is kept.
pub fn freed_memory_serves_other_sizes(allocator: &dyn Allocator) {
    let held: Vec<_> = std::iter::from_fn(|| Held::new(allocator, Request::bytes(800_000)).ok()).collect();
    assert!(held.len() > 50, "{}", held.len());
    drop(held);
    for round in 0..20 {
        let [one, other] = [1, 2].map(|seed| Held::filled(allocator, 2_400_000, seed + round));
        one.give_back();
        other.give_back();
    }
}

/// mlockall(2) for what is mapped from now on.
pub fn lock_future() {
    // SAFETY: locking changes no content.
    assert_eq!(unsafe { libc::mlockall(libc::MCL_FUTURE) }, 0, "{}", std::io::Error::last_os_error());
}

/// Gives up the right to lock as much as one likes, if this process has it.
pub fn become_nobody() {
    // SAFETY: plain values.
    unsafe {
        if libc::geteuid() == 0 {
            assert_eq!(libc::setresuid(65534, 65534, 65534), 0);
        }
    }
}

/// Bytes that are locked.
pub fn locked() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<usize>().unwrap() << 10
}

/// Lets the system refuse calls to this thread, as the seccomp profile of a container does.
pub fn refuse(calls: &[libc::c_long]) {
    let filter = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let (load, equal, answer) =
        (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, libc::BPF_JMP | libc::BPF_JEQ, libc::BPF_RET);
    let mut filters = vec![filter(load, 0, 0, 0)]; // the call's number
    for (at, &call) in calls.iter().enumerate() {
        filters.push(filter(equal | libc::BPF_K, call as u32, (calls.len() - at) as u8, 0));
    }
    filters.push(filter(answer | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0));
    filters.push(filter(answer | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0, 0));
    let program = libc::sock_fprog { len: filters.len() as u16, filter: filters.as_mut_ptr() };
    // SAFETY: the program lives through the calls; it binds this thread alone.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}
