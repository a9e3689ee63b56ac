//! The memory behind pages (`QueryWorkingSetEx`) and mappings (`VirtualQuery`). No query touches a page.

use super::machine::page_size;
use super::memory::check;
use crate::os::inject::{Call, injected};
use crate::os::types::{Errno, PageState};
use std::ffi::c_void;
use std::ops::Range;
use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEM_MAPPED, MEMORY_BASIC_INFORMATION, PAGE_EXECUTE_READWRITE, PAGE_EXECUTE_WRITECOPY, PAGE_GUARD,
    PAGE_NOACCESS, PAGE_READWRITE, PAGE_WRITECOPY, VirtualQuery,
};
use windows_sys::Win32::System::ProcessStatus::{
    K32QueryWorkingSetEx, PSAPI_WORKING_SET_EX_BLOCK, PSAPI_WORKING_SET_EX_INFORMATION,
};
use windows_sys::Win32::System::Threading::GetCurrentProcess;

/// Pages asked about at a time.
const BATCH: usize = 512;

const VALID: usize = 1;
const NODE: (u32, usize) = (16, 0x3f);
const LARGE: usize = 1 << 22;

/// Hands the address of each page and its bits of the working set to `take`.
fn working_set(mut addresses: impl Iterator<Item = usize>, mut take: impl FnMut(usize, usize)) -> Result<(), Errno> {
    if injected(Call::ScanPages) {
        return Err(Errno::NO_ACCESS);
    }
    let none = PSAPI_WORKING_SET_EX_INFORMATION {
        VirtualAddress: std::ptr::null_mut(),
        VirtualAttributes: PSAPI_WORKING_SET_EX_BLOCK { Flags: 0 },
    };
    loop {
        let mut pages = [none; BATCH];
        let mut count = 0;
        for (page, address) in pages.iter_mut().zip(&mut addresses) {
            page.VirtualAddress = address as *mut c_void;
            count += 1;
        }
        if count == 0 {
            return Ok(());
        }
        // SAFETY: the system reads and writes as many entries as it is told.
        check(unsafe {
            let size = (count * size_of::<PSAPI_WORKING_SET_EX_INFORMATION>()) as u32;
            K32QueryWorkingSetEx(GetCurrentProcess(), pages.as_mut_ptr().cast(), size)
        })?;
        for page in &pages[..count] {
            // SAFETY: any bits are valid flags.
            take(page.VirtualAddress as usize, unsafe { page.VirtualAttributes.Flags });
        }
    }
}

pub fn resident_pages(address: usize, size: usize) -> Result<usize, Errno> {
    if size.div_ceil(page_size()) > 4096 {
        return Err(Errno::INVALID);
    }
    let mut there = 0;
    working_set((address..address + size).step_by(page_size()), |_, bits| there += bits & VALID)?;
    Ok(there)
}

pub fn nodes_of(addresses: &[usize], nodes: &mut [i32]) -> Result<(), Errno> {
    let mut nodes = nodes.iter_mut();
    working_set(addresses.iter().copied(), |_, bits| {
        let node = (bits >> NODE.0 & NODE.1) as i32;
        let found = if bits & VALID != 0 { node } else { -Errno::NOTHING_THERE.0 };
        nodes.next().into_iter().for_each(|its| *its = found);
    })
}

/// The working set of the process. Windows has no shared zero page: a page that was never touched is not there.
pub struct PageTable(());

impl PageTable {
    /// Opens it.
    pub fn open() -> Result<Self, Errno> {
        if injected(Call::OpenPages) { Err(Errno::NO_ACCESS) } else { Ok(Self(())) }
    }

    /// Visits the pages of a range that are resident, in order.
    pub fn visit(&self, range: &Range<usize>, visit: &mut dyn FnMut(Range<usize>, PageState)) -> Result<(), Errno> {
        let page = page_size();
        working_set(range.clone().step_by(page), |address, bits| {
            if bits & VALID != 0 {
                visit(address..address + page, if bits & LARGE != 0 { PageState::Huge } else { PageState::Small });
            }
        })
    }

    /// It says nothing of that, and there is no zero page.
    pub fn is_exclusive(&self, _page: usize) -> bool {
        false
    }
}

/// What the system knows of the pages around an address.
fn region(address: usize) -> Option<MEMORY_BASIC_INFORMATION> {
    // SAFETY: a description of zero bytes is valid, and the system fills it.
    unsafe {
        let mut found: MEMORY_BASIC_INFORMATION = std::mem::zeroed();
        let size = VirtualQuery(address as *const c_void, &mut found, size_of::<MEMORY_BASIC_INFORMATION>());
        (size > 0).then_some(found)
    }
}

/// Refuses pages that may not be accessed so, since touching them would end the process. The caller touches all others.
pub fn populate(address: usize, size: usize, write: bool) -> Result<(), Errno> {
    let (mut at, end) = (address, address + size);
    while at < end {
        let may = |protect| if write { is_writable(protect) } else { protect & (PAGE_NOACCESS | PAGE_GUARD) == 0 };
        let region = region(at).filter(|region| region.State == MEM_COMMIT && may(region.Protect));
        let region = region.ok_or(Errno::BAD_ADDRESS)?;
        at = region.BaseAddress as usize + region.RegionSize;
    }
    Err(Errno::UNSUPPORTED)
}

fn is_writable(protect: u32) -> bool {
    matches!(protect, PAGE_READWRITE | PAGE_WRITECOPY | PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY)
}

pub fn is_shared(address: usize) -> bool {
    region(address).is_some_and(|region| region.State == MEM_COMMIT && region.Type == MEM_MAPPED)
}
