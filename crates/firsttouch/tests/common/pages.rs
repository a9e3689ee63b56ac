//! Pages of every kind, and what the core reports about them.

#![allow(unsafe_code)] // Safety: advice changes where pages lie, never what they hold.

use super::mapped::foreign;
use firsttouch::os::{huge_page_size, page_size};
use firsttouch::residency::{PageState, query};
use std::hint::black_box;
use std::ops::Range;

pub fn range(memory: &[u8]) -> Range<usize> {
    let start = memory.as_ptr() as usize;
    start..start + memory.len()
}

/// The state of every page.
pub fn states(memory: &[u8]) -> Vec<PageState> {
    let looked = query(&range(memory));
    let mut at = range(memory).start;
    let mut found = Vec::new();
    for run in looked.iter() {
        assert_eq!(run.range.start, at, "no page is left out, none comes twice");
        at = run.range.end;
        found.extend(vec![run.state; run.range.len() / page_size()]);
    }
    assert_eq!(at, range(memory).end);
    found
}

pub fn advise(memory: &[u8], advice: i32) -> bool {
    // SAFETY: huge or not: the content stays.
    unsafe { libc::madvise(memory.as_ptr() as *mut _, memory.len(), advice) == 0 }
}

pub fn small_pages(count: usize) -> &'static mut [u8] {
    let memory = foreign(0, count * page_size()).unwrap();
    advise(memory, libc::MADV_NOHUGEPAGE);
    memory
}

/// Whole aligned huge pages, where there are any.
pub fn huge_pages(count: usize) -> Option<&'static mut [u8]> {
    let size = huge_page_size()?;
    let memory = foreign(0, (count + 1) * size)?;
    let start = memory.as_ptr().align_offset(size);
    let memory = &mut memory[start..start + count * size];
    advise(memory, libc::MADV_HUGEPAGE).then_some(memory)
}

pub fn read(memory: &[u8], page: usize) {
    // SAFETY: it is there; volatile, so that it happens.
    black_box(unsafe { memory.as_ptr().add(page * page_size()).read_volatile() });
}

/// Some pages of each kind, and what they are. None are swapped: that needs swap space.
pub fn mixed() -> (&'static mut [u8], Vec<PageState>) {
    let memory = small_pages(3000);
    let mut expected = vec![PageState::Absent; 3000];
    let mut random = 7u32;
    for page in 0..3000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        match if page < 1000 { random >> 30 } else { page as u32 / 400 % 4 } {
            0 => {
                read(memory, page);
                expected[page] = PageState::Zero;
            }
            1 => {
                memory[page * page_size()] = 1;
                expected[page] = PageState::Small;
            }
            _ => {}
        }
    }
    (memory, expected)
}
