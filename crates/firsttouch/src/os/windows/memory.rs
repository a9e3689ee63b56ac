//! Memory that is reserved, committed, protected and locked; NUMA nodes; and sections. Windows takes a node when memory is mapped,
//! and then prefers it; it has no policies of pages.

use crate::os::types::{Errno, Processors};
use once_cell::race::OnceBox;
use std::ffi::c_void;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::os::windows::io::{AsRawHandle, FromRawHandle};
use std::ptr::{null, null_mut};
use windows_sys::Win32::Foundation::{CloseHandle, ERROR_ALREADY_EXISTS, HANDLE, INVALID_HANDLE_VALUE, LUID};
use windows_sys::Win32::Security::{
    AdjustTokenPrivileges, LUID_AND_ATTRIBUTES, LookupPrivilegeValueW, SE_LOCK_MEMORY_NAME, SE_PRIVILEGE_ENABLED,
    TOKEN_ADJUST_PRIVILEGES, TOKEN_PRIVILEGES, TOKEN_QUERY,
};
use windows_sys::Win32::System::Memory::{
    CreateFileMappingW, FILE_MAP_READ, FILE_MAP_WRITE, GetLargePageMinimum, MEM_ADDRESS_REQUIREMENTS, MEM_COMMIT,
    MEM_DECOMMIT, MEM_EXTENDED_PARAMETER, MEM_EXTENDED_PARAMETER_0, MEM_EXTENDED_PARAMETER_1,
    MEM_EXTENDED_PARAMETER_TYPE, MEM_LARGE_PAGES, MEM_RELEASE, MEM_RESERVE, MEMORY_MAPPED_VIEW_ADDRESS, MapViewOfFile,
    MemExtendedParameterAddressRequirements, MemExtendedParameterNumaNode, OpenFileMappingW, PAGE_NOACCESS,
    PAGE_READWRITE, UnmapViewOfFile, VirtualAlloc, VirtualAlloc2, VirtualFree, VirtualLock, VirtualProtect,
};
use windows_sys::Win32::System::SystemInformation::GROUP_AFFINITY;
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetCurrentProcessorNumberEx, GetNumaAvailableMemoryNodeEx, GetNumaHighestNodeNumber,
    GetNumaNodeProcessorMaskEx, GetNumaProcessorNodeEx, OpenProcessToken,
};

/// Windows places reservations at multiples of this, whatever the page size.
const GRANULARITY: usize = 64 << 10;

/// The result of a call that returns zero when it fails.
pub(super) fn check(result: i32) -> Result<(), Errno> {
    if result != 0 { Ok(()) } else { Err(Errno::last()) }
}

fn allocate(address: usize, size: usize, kind: u32) -> Result<usize, Errno> {
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
    // SAFETY: as demanded.
    check(unsafe { VirtualFree(address as *mut c_void, size, MEM_DECOMMIT) })
}

/// Maps memory at a multiple of `align`, preferably of a node.
fn allocate_placed(size: usize, align: usize, node: Option<usize>, kind: u32) -> Result<usize, Errno> {
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
    let (count, kind) = (1 + u32::from(node.is_some()), MEM_RESERVE | MEM_COMMIT | kind);
    // SAFETY: the parameters live until the call returns, and a mapping at an address of the system's choice replaces nothing.
    let at = unsafe { VirtualAlloc2(null_mut(), null(), size, kind, PAGE_READWRITE, parameters.as_mut_ptr(), count) };
    if at.is_null() { Err(Errno::last()) } else { Ok(at as usize) }
}

/// On pages of `node` while that has free ones.
pub fn map_aligned(size: usize, align: usize, node: Option<usize>) -> Result<usize, Errno> {
    if align <= GRANULARITY && node.is_none() {
        return allocate(0, size, MEM_RESERVE | MEM_COMMIT);
    }
    allocate_placed(size, align, node, 0)
}

pub unsafe fn unmap(address: usize, _size: usize) -> Result<(), Errno> {
    let address = address as *mut c_void;
    // SAFETY: as demanded. The first call refuses views of sections.
    unsafe {
        check(VirtualFree(address, 0, MEM_RELEASE))
            .or_else(|_| check(UnmapViewOfFile(MEMORY_MAPPED_VIEW_ADDRESS { Value: address })))
    }
}

pub unsafe fn protect(address: usize, size: usize, accessible: bool) -> Result<(), Errno> {
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

/// They are resident at once. The user needs the right to lock pages in memory.
pub fn map_huge(size: usize, page: usize, node: Option<usize>) -> Result<usize, Errno> {
    static MAY: OnceBox<Result<(), Errno>> = OnceBox::new();
    // SAFETY: returns a number.
    if page != unsafe { GetLargePageMinimum() } {
        return Err(Errno::INVALID);
    }
    (*MAY.get_or_init(|| Box::new(may_lock_pages())))?;
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

// ---- Nodes -----------------------------------------------------------------------------------------------------------

fn highest() -> u32 {
    let mut node = 0;
    // SAFETY: the system writes one number.
    unsafe { GetNumaHighestNodeNumber(&mut node) };
    node
}

pub fn node(number: usize) -> Option<(Processors, usize)> {
    if highest() == 0 || number > highest() as usize {
        return None;
    }
    let (mut mask, mut free) = (GROUP_AFFINITY::default(), 0);
    // SAFETY: the system writes a mask and a number.
    unsafe {
        check(GetNumaNodeProcessorMaskEx(number as u16, &mut mask)).ok()?;
        check(GetNumaAvailableMemoryNodeEx(number as u16, &mut free)).ok()?;
    }
    let first = usize::from(mask.Group) * 64; // as `current_processor` counts
    let processors = (0..64).filter(|at| mask.Mask >> at & 1 == 1).map(|at| first + at).collect();
    Some((processors, free as usize))
}

pub fn current_node() -> usize {
    let mut node = 0;
    // SAFETY: a processor's number of zero bytes is valid; the system writes it, and the number of a node.
    let found = unsafe {
        let mut number = std::mem::zeroed();
        GetCurrentProcessorNumberEx(&mut number);
        GetNumaProcessorNodeEx(&number, &mut node)
    };
    if found != 0 { usize::from(node) } else { 0 }
}

// ---- Sections: memory that other processes of the same session can map. The system frees it with its last handle and view ----

/// The name of a section, in the namespace of the session, as the system wants it.
fn wide(name: &str) -> Vec<u16> {
    format!("Local\\{name}\0").encode_utf16().collect()
}

/// The owner of a section: a `File` owns any handle.
fn owner(handle: HANDLE) -> Result<File, Errno> {
    // SAFETY: who calls has just got the handle, and passes it on.
    if handle.is_null() { Err(Errno::last()) } else { Ok(unsafe { File::from_raw_handle(handle) }) }
}

pub fn memory_file(name: &str, size: usize) -> Result<File, Errno> {
    let (name, high, low) = (wide(name), (size >> 32) as u32, size as u32);
    // SAFETY: the name ends with a zero.
    let handle = unsafe { CreateFileMappingW(INVALID_HANDLE_VALUE, null(), PAGE_READWRITE, high, low, name.as_ptr()) };
    let is_there = Errno::last() == Errno(ERROR_ALREADY_EXISTS as i32);
    let file = owner(handle)?;
    if is_there { Err(Errno::EXISTS) } else { Ok(file) }
}

pub fn find_memory_file(_process: u32, _number: i32, name: &str) -> Result<File, Errno> {
    let access = FILE_MAP_READ | FILE_MAP_WRITE;
    // SAFETY: the name ends with a zero.
    owner(unsafe { OpenFileMappingW(access, 0, wide(name).as_ptr()) })
}

pub fn file_number(file: &File) -> i32 {
    file.as_raw_handle() as i32
}

pub fn map_file(file: &File, from: usize, size: usize, write: bool) -> Result<usize, Errno> {
    let access = if write { FILE_MAP_READ | FILE_MAP_WRITE } else { FILE_MAP_READ };
    // SAFETY: a view at an address of the system's choice replaces nothing.
    let view = unsafe { MapViewOfFile(file.as_raw_handle(), access, (from >> 32) as u32, from as u32, size) };
    match Errno::last() {
        _ if !view.Value.is_null() => Ok(view.Value as usize),
        Errno::NO_ACCESS => Err(Errno::INVALID), // what it says of views beyond the end
        error => Err(error),
    }
}

/// Keys of the system's random numbers stand behind the hashes.
pub fn random() -> Result<[u8; 16], Errno> {
    let hash = || u128::from(RandomState::new().hash_one(0));
    Ok((hash() << 64 | hash()).to_ne_bytes())
}
