//! Sizes, bytes and durations.

use super::wrong_type;
use crate::adaptors::AUTO;
use crate::description::Value;
use crate::factory::{Error, Given};
use crate::layout::{MAX_SIZE, checked_align};
use crate::size;
use std::time::Duration;

const MOST: i128 = MAX_SIZE as i128;
const SIZE: &str = "a number of bytes, or text like \"4 GiB\"";
const SIZE_OR_NONE: &str = "a number of bytes, text like \"4 GiB\", or None";
const BYTE: &str = "a byte, 0 to 255, or None to leave memory as it is";
const SECONDS: &str = "seconds, 0 or more, or None for never";

/// Checks a size, a number or text. `optional` adds `None` to the message; it is not accepted here.
///
/// # Errors
/// If it is not a size.
pub fn size(name: &str, given: &Given, optional: bool) -> Result<usize, Error> {
    let wanted = if optional { SIZE_OR_NONE } else { SIZE };
    match given {
        Given::Value(Value::Text(text)) => size::parse(text).map_err(|why| Error::Value(format!("{name}: {why}"))),
        Given::Value(Value::Integer(number @ 0..=MOST)) => Ok(*number as usize),
        Given::Value(Value::Integer(number)) if *number > MOST => {
            Err(Error::Value(format!("{name}={number} is larger than any address space ({MAX_SIZE} bytes)")))
        }
        Given::Value(Value::Integer(_)) | Given::Large(_) => Err(Error::Value(format!(
            "{name}={} is not a number of bytes: give 0 or more, or text like \"4 GiB\"",
            given.shown()
        ))),
        _ => Err(wrong_type(name, given, wanted)),
    }
}

/// Checks a size of at least one byte, or `auto`.
///
/// # Errors
/// If it is neither.
pub fn budget(name: &str, given: &Given) -> Result<Value, Error> {
    if *given == Given::Value(AUTO.into()) {
        return Ok(AUTO.into());
    }
    match size(name, given, false)? {
        0 => Err(Error::Value(format!("{name}=0 would serve no array: give at least 1 byte"))),
        bytes => Ok(bytes.into()),
    }
}

/// Checks an alignment, a power of two.
///
/// # Errors
/// If it is not a size, or not a power of two up to 1 GiB.
pub fn alignment(name: &str, given: &Given) -> Result<usize, Error> {
    match size(name, given, false)? {
        0 => Err(Error::Value(format!("{name}=0: give a power of two from 1 byte to 1 GiB"))),
        bytes => checked_align(bytes).map_err(|error| Error::Value(error.to_string())),
    }
}

/// Checks a byte to fill memory with, or `None`.
///
/// # Errors
/// If it is neither.
pub fn byte(name: &str, given: &Given) -> Result<Option<u8>, Error> {
    match given {
        Given::Value(Value::None) => Ok(None),
        Given::Value(Value::Integer(number)) => u8::try_from(*number).map(Some).map_err(|_| {
            Error::Value(format!("{name}={number} is not a byte: give 0 to 255, or None to leave memory as it is"))
        }),
        _ => Err(wrong_type(name, given, BYTE)),
    }
}

/// Checks seconds, a number that may have a fraction, or `None`.
///
/// # Errors
/// If it is neither, or not a valid duration.
pub fn seconds(name: &str, given: &Given) -> Result<Value, Error> {
    let seconds = match given {
        Given::Value(Value::None) => return Ok(Value::None),
        Given::Value(Value::Integer(number)) => *number as f64,
        Given::Value(Value::Float(number)) => *number,
        _ => return Err(wrong_type(name, given, SECONDS)),
    };
    match Duration::try_from_secs_f64(seconds) {
        Ok(_) => Ok(Value::Float(seconds)),
        Err(_) => Err(Error::Value(format!("{name}={seconds:?} is not a time: give {SECONDS}"))),
    }
}

/// Checks the address of a C function or of its context.
///
/// # Errors
/// If it is not an address.
pub fn address(name: &str, given: &Given) -> Result<usize, Error> {
    match given {
        Given::Value(Value::Integer(number)) => usize::try_from(*number).map_err(|_| no_address(name, given)),
        Given::Large(_) => Err(no_address(name, given)),
        _ => Err(wrong_type(name, given, "an address, as from ctypes.cast(function, ctypes.c_void_p).value")),
    }
}

/// Checks the address of a C function, which is not 0.
///
/// # Errors
/// If it is not one.
pub fn function(name: &str, given: &Given) -> Result<usize, Error> {
    match address(name, given)? {
        0 => Err(Error::Value(format!("{name}=0 is not the address of a function"))),
        address => Ok(address),
    }
}

fn no_address(name: &str, given: &Given) -> Error {
    Error::Value(format!("{name}={} is not an address: give 0 to 2**64 - 1", given.shown()))
}
