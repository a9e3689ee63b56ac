//! The first process of a guest: file systems, and shutdown.

use std::ffi::CString;

fn mount(kind: &str, at: &str) {
    std::fs::create_dir_all(at).unwrap();
    let (kind, at) = (CString::new(kind).unwrap(), CString::new(at).unwrap());
    // SAFETY: the strings end in zero and live through the call.
    let result = unsafe { libc::mount(kind.as_ptr(), at.as_ptr(), kind.as_ptr(), 0, std::ptr::null()) };
    assert_eq!(result, 0, "mount {kind:?}: {}", std::io::Error::last_os_error());
}

/// Whether this is a guest's first process; then its file systems are there.
pub fn boot() -> bool {
    if std::process::id() != 1 {
        return false;
    }
    for (kind, at) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp")] {
        mount(kind, at);
    }
    mount("cgroup2", "/sys/fs/cgroup");
    // Pages stay where they are put, unless a test asks for the kernel's own balancing.
    std::fs::write("/proc/sys/kernel/numa_balancing", "0").unwrap();
    // Base pages stay base pages, so that the tests can look at each.
    std::fs::write("/sys/kernel/mm/transparent_hugepage/enabled", "madvise").unwrap();
    // Nor does anybody make huge pages of small ones, which lie on one node.
    std::fs::write("/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs", "3600000").unwrap();
    true
}

/// Ends the machine.
pub fn power_off() -> ! {
    // SAFETY: nothing is lost: there are no disks.
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_POWER_OFF);
    }
    unreachable!("the machine is off")
}
