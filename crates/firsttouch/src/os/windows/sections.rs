//! Sections: memory that other processes of the same session can map. The system frees it with its last handle and view.

use crate::os::types::Errno;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::os::windows::io::{AsRawHandle, FromRawHandle};
use std::ptr::null;
use windows_sys::Win32::Foundation::{ERROR_ALREADY_EXISTS, HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::System::Memory::{
    CreateFileMappingW, FILE_MAP_READ, FILE_MAP_WRITE, MapViewOfFile, OpenFileMappingW, PAGE_READWRITE,
};

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

pub fn find_memory_file(_process: u32, _number: i32, name: &str, write: bool) -> Result<File, Errno> {
    let access = if write { FILE_MAP_READ | FILE_MAP_WRITE } else { FILE_MAP_READ };
    // SAFETY: the name ends with a zero.
    owner(unsafe { OpenFileMappingW(access, 0, wide(name).as_ptr()) })
}

pub fn file_number(file: &File) -> i32 {
    file.as_raw_handle() as i32
}

pub fn map_file(file: &File, size: usize, write: bool) -> Result<usize, Errno> {
    let access = if write { FILE_MAP_READ | FILE_MAP_WRITE } else { FILE_MAP_READ };
    // SAFETY: a view at an address of the system's choice replaces nothing.
    let view = unsafe { MapViewOfFile(file.as_raw_handle(), access, 0, 0, size) };
    match Errno::last() {
        _ if !view.Value.is_null() => Ok(view.Value as usize),
        Errno::NO_ACCESS => Err(Errno::INVALID), // what it says of views beyond the end
        error => Err(error),
    }
}

/// Keys of the system's random numbers stand behind the hashes.
pub fn random() -> [u8; 16] {
    let hash = || u128::from(RandomState::new().hash_one(0));
    (hash() << 64 | hash()).to_ne_bytes()
}
