//! Reserves, commits, protects and locks memory.

use crate::os::inject::{Call, injected};
use crate::os::types::Errno;
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use windows_sys::Win32::Foundation::{CloseHandle, HANDLE, LUID};
use windows_sys::Win32::Security::{
    AdjustTokenPrivileges, LUID_AND_ATTRIBUTES, LookupPrivilegeValueW, SE_LOCK_MEMORY_NAME, SE_PRIVILEGE_ENABLED,
    TOKEN_ADJUST_PRIVILEGES, TOKEN_PRIVILEGES, TOKEN_QUERY,
};
use windows_sys::Win32::System::Memory::{
    GetLargePageMinimum, MEM_ADDRESS_REQUIREMENTS, MEM_COMMIT, MEM_DECOMMIT, MEM_EXTENDED_PARAMETER,
    MEM_EXTENDED_PARAMETER_0, MEM_EXTENDED_PARAMETER_1, MEM_EXTENDED_PARAMETER_TYPE, MEM_LARGE_PAGES, MEM_RELEASE,
    MEM_RESERVE, MEMORY_MAPPED_VIEW_ADDRESS, MemExtendedParameterAddressRequirements, MemExtendedParameterNumaNode,
    PAGE_NOACCESS, PAGE_READWRITE, UnmapViewOfFile, VirtualAlloc, VirtualAlloc2, VirtualFree, VirtualLock,
    VirtualProtect,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

/// Windows places reservations at multiples of this, whatever the page size.
const GRANULARITY: usize = 64 << 10;

/// The result of a call that returns zero when it fails.
pub(super) fn check(result: i32) -> Result<(), Errno> {
    if result != 0 { Ok(()) } else { Err(Errno::last()) }
}

fn allocate(address: usize, size: usize, kind: u32) -> Result<usize, Errno> {
    if injected(Call::Map) {
        return Err(Errno::NO_MEMORY);
    }
    // SAFETY: a reservation replaces nothing, and what is committed already stays as it is.
    let at = unsafe { VirtualAlloc(address as *const c_void, size, kind, PAGE_READWRITE) };
    if at.is_null() { Err(Errno::last()) } else { Ok(at as usize) }
}

pub fn reserve(address: usize, size: usize) -> Result<(), Errno> {
    allocate(address, size, MEM_RESERVE).map(drop)
}

/// With all that is committed in it.
pub unsafe fn release(address: usize) {
    // SAFETY: as demanded. A refusal leaves address space reserved.
    unsafe { VirtualFree(address as *mut c_void, 0, MEM_RELEASE) };
}

pub fn commit(address: usize, size: usize) -> Result<usize, Errno> {
    allocate(address, size, MEM_COMMIT)
}

pub unsafe fn decommit(address: usize, size: usize) -> Result<(), Errno> {
    if injected(Call::Unmap) {
        return Err(Errno::NO_MEMORY);
    }
    // SAFETY: as demanded.
    check(unsafe { VirtualFree(address as *mut c_void, size, MEM_DECOMMIT) })
}

pub fn map_anywhere(size: usize) -> Result<usize, Errno> {
    allocate(0, size, MEM_RESERVE | MEM_COMMIT)
}

/// Calls `map` with what a mapping asks for beyond its size: a multiple of `align`, and a node to prefer.
fn placed<T>(align: usize, node: Option<usize>, map: impl FnOnce(*mut MEM_EXTENDED_PARAMETER, u32) -> T) -> T {
    let mut where_to = MEM_ADDRESS_REQUIREMENTS {
        LowestStartingAddress: null_mut(),
        HighestEndingAddress: null_mut(),
        Alignment: if align > GRANULARITY { align } else { 0 },
    };
    let parameter = |kind: MEM_EXTENDED_PARAMETER_TYPE, value| MEM_EXTENDED_PARAMETER {
        Anonymous1: MEM_EXTENDED_PARAMETER_0 { _bitfield: kind as u64 },
        Anonymous2: value,
    };
    let place = MEM_EXTENDED_PARAMETER_1 { Pointer: (&raw mut where_to).cast() };
    let preferred = MEM_EXTENDED_PARAMETER_1 { ULong: node.unwrap_or_default() as u32 };
    let mut parameters =
        [parameter(MemExtendedParameterAddressRequirements, place), parameter(MemExtendedParameterNumaNode, preferred)];
    map(parameters.as_mut_ptr(), 1 + u32::from(node.is_some()))
}

fn allocate_placed(size: usize, align: usize, node: Option<usize>, kind: u32) -> Result<usize, Errno> {
    if injected(Call::Map) {
        return Err(Errno::NO_MEMORY);
    }
    // SAFETY: the parameters live until the call returns, and a mapping at an address of the system's choice replaces
    // nothing.
    let at = placed(align, node, |parameters, count| unsafe {
        VirtualAlloc2(null_mut(), null(), size, MEM_RESERVE | MEM_COMMIT | kind, PAGE_READWRITE, parameters, count)
    });
    if at.is_null() { Err(Errno::last()) } else { Ok(at as usize) }
}

/// On pages of `node` while that has free ones.
pub fn map_aligned(size: usize, align: usize, node: Option<usize>) -> Result<usize, Errno> {
    if align <= GRANULARITY && node.is_none() {
        return map_anywhere(size);
    }
    allocate_placed(size, align, node, 0)
}

pub unsafe fn unmap(address: usize, _size: usize) -> Result<(), Errno> {
    if injected(Call::Unmap) {
        return Err(Errno::NO_MEMORY);
    }
    let address = address as *mut c_void;
    // SAFETY: as demanded. The first call refuses views of sections.
    unsafe {
        check(VirtualFree(address, 0, MEM_RELEASE))
            .or_else(|_| check(UnmapViewOfFile(MEMORY_MAPPED_VIEW_ADDRESS { Value: address })))
    }
}

pub unsafe fn protect(address: usize, size: usize, accessible: bool) -> Result<(), Errno> {
    if injected(Call::Protect) {
        return Err(Errno::NO_MEMORY);
    }
    let access = if accessible { PAGE_READWRITE } else { PAGE_NOACCESS };
    let mut before = 0;
    // SAFETY: as demanded; the system writes one number.
    check(unsafe { VirtualProtect(address as *const c_void, size, access, &mut before) })
}

/// As far as the working set of the process allows.
pub fn lock(address: usize, size: usize) -> Result<(), Errno> {
    // SAFETY: locking changes no content; the system checks the range.
    check(unsafe { VirtualLock(address as *const c_void, size) })
}

pub fn explicit_huge_pages() -> Result<Vec<usize>, Errno> {
    // SAFETY: returns a number.
    let size = unsafe { GetLargePageMinimum() };
    Ok(if size > 0 { vec![size] } else { Vec::new() })
}

/// They are resident at once. The user needs the right to lock pages in memory.
pub fn map_huge(size: usize, page: usize, node: Option<usize>) -> Result<usize, Errno> {
    static MAY: OnceLock<Result<(), Errno>> = OnceLock::new();
    (*MAY.get_or_init(may_lock_pages))?;
    allocate_placed(size, page, node, MEM_LARGE_PAGES)
}

/// Turns on the process's privilege to lock pages, if its user has that right.
fn may_lock_pages() -> Result<(), Errno> {
    let mut token: HANDLE = null_mut();
    let mut wanted = TOKEN_PRIVILEGES {
        PrivilegeCount: 1,
        Privileges: [LUID_AND_ATTRIBUTES { Luid: LUID { LowPart: 0, HighPart: 0 }, Attributes: SE_PRIVILEGE_ENABLED }],
    };
    // SAFETY: the system writes one handle and one number, and reads one privilege.
    unsafe {
        check(OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY, &mut token))?;
        let found = check(LookupPrivilegeValueW(null(), SE_LOCK_MEMORY_NAME, &mut wanted.Privileges[0].Luid));
        let set = found.and_then(|()| {
            check(AdjustTokenPrivileges(token, 0, &raw const wanted, 0, null_mut(), null_mut()))?;
            // It succeeds also where the user lacks the right, and says so in the error alone.
            match std::io::Error::last_os_error().raw_os_error() {
                Some(0) | None => Ok(()),
                _ => Err(Errno::NOT_PERMITTED),
            }
        });
        CloseHandle(token);
        set
    }
}
