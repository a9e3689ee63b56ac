//! Shared memory: handles are checked before they are mapped, and memory dropped in flight is bounded.

mod common;

use common::process::within;
use firsttouch::os::{self, Errno};
use firsttouch::shared::{Handle, Shared};

fn new(size: usize) -> Shared {
    Shared::new(size).expect("memory")
}

fn refused(handle: &Handle) -> Errno {
    Shared::open(handle, true).map(|_| ()).expect_err("it was opened")
}

#[test]
fn a_handle_has_to_fit_its_file() {
    let shared = new(10_000);
    let handle = shared.handle().expect("a handle");
    for size in [0, 1 << 20, 1 << 40, usize::MAX] {
        assert_eq!(refused(&Handle { size, ..handle.clone() }), Errno::INVALID, "{size}");
    }
    assert_eq!(Shared::open(&handle, true).map(|opened| opened.size()), Ok(shared.size()));
    let handle = new(200_000).handle().expect("a handle");
    assert_eq!(refused(&Handle { size: 4096, ..handle }), Errno::INVALID, "its ticket would lie within the memory");
    let shared = new(64 << 10);
    let handle = shared.handle().expect("a handle");
    let size = handle.size + 4096;
    assert_eq!(refused(&Handle { size, ..handle }), Errno::INVALID, "tickets would be memory");
}

#[test]
fn memory_in_flight_is_kept_for_one_opener_and_bounded() {
    let opened = new(100).handle().expect("a handle");
    assert!(Shared::open(&opened, true).is_ok());
    let again = || Shared::open(&opened, true).err() == Some(Errno::NOTHING_THERE);
    within("it is nobody's", again);

    let limit = os::file_limit().map_or(4096, |limit| (limit / 4).min(4096));
    let handles: Vec<_> = (0..limit + 10).map(|_| new(100).handle().expect("a handle")).collect();
    assert_eq!(refused(&handles[0]), Errno::NOTHING_THERE);
    assert!(Shared::open(&handles[limit + 9], true).is_ok());
}

#[test]
fn an_address_knows_whether_it_is_shared() {
    let (shared, own) = (new(100_000), [0_u8; 100]);
    assert!(os::is_shared(shared.address() + 4096) && !os::is_shared(own.as_ptr().addr()));
}
