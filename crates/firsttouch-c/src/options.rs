//! Structures that begin with their size: what a caller compiled against an older header does not know keeps its default,
//! and is not written.

use crate::error::{Status, fail};

/// A structure of the header, all of whose fields may be zero.
///
/// # Safety
/// It is `repr(C)`, begins with a `usize` that holds its size, and any bytes are a valid value of it.
pub unsafe trait Versioned: Copy {
    /// Its name in the header.
    const NAME: &'static str;
    /// What callers initialize it with.
    const INITIALIZER: &'static str;
    /// Its bytes in the release that introduced it. It never changes; further fields begin behind it, not in its padding.
    const LEAST: usize;
}

fn checked<T: Versioned>(size: usize) -> Result<usize, Status> {
    const { assert!(T::LEAST <= size_of::<T>()) };
    if size < T::LEAST {
        let (name, initializer) = (T::NAME, T::INITIALIZER);
        return Err(fail(
            Status::Invalid,
            format_args!("{name}.struct_size is {size}: initialize the structure with {initializer}"),
        ));
    }
    Ok(size.min(size_of::<T>()))
}

/// Reads options; null gives `default`, and so do the fields that the caller's structure does not have.
///
/// # Safety
/// Null, or a structure whose first word is the number of its readable bytes.
pub unsafe fn read<T: Versioned>(from: *const T, default: T) -> Result<T, Status> {
    let mut options = default;
    if !from.is_null() {
        // SAFETY: null or a structure that begins with its size, as the header demands of C programs; `size` is at most
        // that of either structure.
        unsafe {
            let size = checked::<T>(from.cast::<usize>().read())?;
            std::ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut options).cast::<u8>(), size);
        }
    }
    Ok(options)
}

/// Writes results into the fields that the caller's structure has; its size stays.
///
/// # Safety
/// A structure whose first word is the number of its writable bytes.
pub unsafe fn write<T: Versioned>(to: *mut T, value: &T) -> Result<(), Status> {
    if to.is_null() {
        return Err(fail(Status::Invalid, format_args!("the address of the {} is NULL", T::NAME)));
    }
    const WORD: usize = size_of::<usize>();
    // SAFETY: a structure that begins with its size, as the header demands of C programs; `size` is at most that of
    // either structure.
    unsafe {
        let size = checked::<T>(to.cast::<usize>().read())?;
        let from = (&raw const *value).cast::<u8>();
        std::ptr::copy_nonoverlapping(from.add(WORD), to.cast::<u8>().add(WORD), size - WORD);
    }
    Ok(())
}
