//! Tests that need a machine of their own: huge pages reserved at boot, swap.

use super::view::{free_huge_pages, policy, touched, untouched, write};
use firsttouch::allocator::{Allocator, Limit, Request};
use firsttouch::pages::placement::{Page, Placement, Reason};
use firsttouch::residency;
use firsttouch::sources::Pages;
use std::ffi::CString;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// Pages of the kernel's pool, of either size, are granted where there are some, and in the order of the wishes.
pub fn huge_pages_from_the_pool() {
    let (small, giant) = (2 << 20, 1 << 30);
    std::fs::write("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "4").unwrap();
    let pages = |page, strict| Pages::placed(Placement { page, strict, ..Placement::default() });
    let source = pages(Page::Explicit(small), false);
    let held = touched(&*source, 3 * small);
    let (_, receipt) = source.receipt(held.address()).unwrap();
    assert_eq!((receipt.page, receipt.bytes), (Page::Explicit(small), 3 * small));
    assert_eq!(free_huge_pages(small, None), Some(1));
    let next = touched(&*source, 2 * small);
    let (_, receipt) = source.receipt(next.address()).unwrap();
    let refused = Some((Page::Explicit(small), Reason::Pool));
    assert_eq!((receipt.page, receipt.refused), (Page::Transparent, refused));
    let error = pages(Page::Explicit(small), true).allocate(Request::bytes(2 * small)).unwrap_err();
    assert_eq!(error.limit, Limit::Placement);
    drop(held);
    assert_eq!(free_huge_pages(small, None), Some(4));
    std::fs::write("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0").unwrap();

    if free_huge_pages(giant, None).unwrap_or(0) == 0 {
        return println!("  no pages of 1 GiB here: reserve them at boot");
    }
    let source = pages(Page::Explicit(giant), true);
    let held = untouched(&*source, giant);
    let (_, receipt) = source.receipt(held.address()).unwrap();
    assert_eq!((receipt.page, receipt.bytes, held.address() % giant), (Page::Explicit(giant), giant, 0));
    assert_eq!(free_huge_pages(giant, None), Some(1), "it is made real by its first touch");
    assert!(receipt.refused.is_none());
}

/// A disk in memory as swap: pages that left are told as swapped, and come back as they were.
pub fn swapped() {
    const BYTES: usize = 4 << 20;
    let Ok(module) = std::fs::File::open("/brd.ko") else {
        return println!("  no disk in memory here, so no swap");
    };
    let options = CString::new("rd_nr=1 rd_size=32768").unwrap();
    // SAFETY: the kernel reads a file and a string.
    assert_eq!(unsafe { libc::syscall(libc::SYS_finit_module, module.as_raw_fd(), options.as_ptr(), 0) }, 0);
    let mut head = [0u8; 4096];
    head[1024..1028].copy_from_slice(&1u32.to_ne_bytes());
    head[1028..1032].copy_from_slice(&((32768u32 * 1024 / 4096) - 1).to_ne_bytes());
    head[4086..].copy_from_slice(b"SWAPSPACE2");
    let disk = std::fs::File::options().write(true).open("/dev/ram0").unwrap();
    disk.write_all_at(&head, 0).unwrap();
    let path = CString::new("/dev/ram0").unwrap();
    // SAFETY: the disk is ours and holds nothing.
    assert_eq!(unsafe { libc::swapon(path.as_ptr(), 0) }, 0, "{}", std::io::Error::last_os_error());

    let pages = Pages::placed(Placement { policy: policy("local"), ..Placement::default() });
    let held = untouched(&*pages, BYTES);
    write(held.address(), BYTES / 2, 7);
    // SAFETY: the advice lets pages leave memory and come back as they are.
    assert_eq!(unsafe { libc::madvise(held.address() as *mut _, BYTES, 21) }, 0, "MADV_PAGEOUT");
    let figures = || {
        let range = held.address()..held.address() + BYTES;
        let summed = residency::summarize(&residency::query(&range));
        ["swapped", "absent", "real"].map(|name| summed.figures.iter().find(|(each, _)| *each == name).unwrap().1)
    };
    let [gone, absent, real] = figures().map(Option::unwrap);
    assert!(gone >= BYTES / 4, "swapped: {gone}, real: {real}");
    assert_eq!((gone + real, absent), (BYTES / 2, BYTES / 2));
    for at in (held.address()..held.address() + BYTES / 2).step_by(4096) {
        // SAFETY: the block is ours.
        assert_eq!(unsafe { std::ptr::with_exposed_provenance::<u8>(at).read_volatile() }, 7);
    }
    assert_eq!(figures(), [Some(0), Some(BYTES / 2), Some(BYTES / 2)]);
    // SAFETY: as above.
    assert_eq!(unsafe { libc::swapoff(path.as_ptr()) }, 0);
}
