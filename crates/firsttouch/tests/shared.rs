//! Shared memory: handles are checked before they are mapped, and memory dropped in flight is bounded.

#![allow(unsafe_code)] // Safety: memory is read while it is mapped.

mod common;

use common::process::within;
use firsttouch::os::{self, Errno};
use firsttouch::shared::{Handle, Shared};
use std::slice::from_raw_parts;

fn new(size: usize) -> Shared {
    Shared::new(size).expect("memory")
}

fn refused(handle: &Handle) -> Errno {
    Shared::open(handle, true).map(|_| ()).expect_err("it was opened")
}

#[test]
fn a_handle_has_to_fit_its_file() {
    for asked in [10_000, 64 << 10] {
        let shared = new(asked);
        let handle = shared.handle().expect("a handle");
        for size in [shared.size() + 4096, 1 << 20, 1 << 40, usize::MAX] {
            assert_eq!(refused(&Handle { size, ..handle.clone() }), Errno::INVALID, "{size}");
        }
        for size in [4096, shared.size()] {
            let opened = Shared::open(&Handle { size, ..handle.clone() }, true).expect("the memory");
            // SAFETY: nobody writes to it.
            let bytes = unsafe { from_raw_parts(opened.address() as *const u8, opened.size()) };
            assert_eq!((bytes.len(), bytes.iter().position(|&byte| byte != 0)), (size, None), "no count is in it");
        }
    }
}

#[test]
fn memory_in_flight_is_kept_for_one_opener_and_bounded() {
    let shared = new(100);
    let opened = shared.handle().expect("a handle");
    assert!([(); 3].iter().all(|()| Shared::open(&opened, true).is_ok()), "as often as it is held");
    let opened = shared.handle().expect("a handle");
    drop(shared);
    assert!(Shared::open(&opened, true).is_ok());
    let again = || Shared::open(&opened, true).err() == Some(Errno::NOTHING_THERE);
    within("it is nobody's", again);

    let limit = os::file_limit().map_or(4096, |limit| (limit / 4).min(4096));
    let handles: Vec<_> = (0..limit + 10).map(|_| new(100).handle().expect("a handle")).collect();
    assert_eq!(refused(&handles[0]), Errno::NOTHING_THERE);
    assert!(Shared::open(&handles[limit + 9], true).is_ok());
}

/// Nobody could guess the name of the memory, or there is none.
#[test]
#[cfg(target_os = "linux")]
fn without_random_bytes_none_is_made() {
    let refused = || {
        common::limits::refuse(&[libc::SYS_getrandom]);
        Shared::new(100).err()
    };
    assert_eq!(std::thread::spawn(refused).join().unwrap(), Some(Errno::NOT_PERMITTED));
}

#[test]
fn an_address_knows_whether_it_is_shared() {
    let (shared, own) = (new(100_000), [0_u8; 100]);
    assert!(os::is_shared(shared.address() + 4096) && !os::is_shared(own.as_ptr().addr()));
}
