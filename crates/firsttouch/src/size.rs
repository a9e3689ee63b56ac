//! Parses and formats human-readable sizes: `65536`, `"64 KiB"`, `"1.5 GB"`.

use crate::layout::MAX_SIZE;
use std::fmt;

/// Parses a size: a number with an optional unit, in bytes. KiB, MiB, GiB, TiB and a bare K, M, G or T are powers of 1024;
/// KB, MB, GB and TB are powers of 1000. Case and surrounding spaces are ignored.
///
/// # Errors
/// A message that quotes the text and lists what is accepted.
pub fn parse(text: &str) -> Result<usize, String> {
    let refused = || {
        format!(
            "{text:?} is not a size: write a number of bytes, or a number with a unit, like 65536, \"64 KiB\", \"1.5 GiB\" or \"4 GB\""
        )
    };
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let scale: u64 = match &*unit.trim().to_ascii_lowercase() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        _ => return Err(refused()),
    };
    let digits = number.replace('_', "");
    let bytes = match digits.parse::<u64>() {
        Ok(whole) => u128::from(whole) * u128::from(scale),
        Err(_) if digits.contains('.') => {
            let value: f64 = digits.parse().map_err(|_| refused())?;
            (value * scale as f64).round() as u128
        }
        Err(_) => return Err(refused()),
    };
    if bytes > MAX_SIZE as u128 {
        return Err(format!("{text:?} is larger than any address space ({MAX_SIZE} bytes)"));
    }
    Ok(bytes as usize)
}

/// A number of bytes, which messages give in the largest unit that is not above it: `76.29 MiB`. A number of units that is not
/// exactly whole keeps two digits: a message may say that 64.00 MiB exceed 64 MiB, but never that 64 MiB do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 7] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let step = (self.0.max(1).ilog2() / 10).min(UNITS.len() as u32 - 1);
        let (unit, name) = (1_u128 << (10 * step), UNITS[step as usize]);
        let hundredths = (self.0 as u128 * 100 + unit / 2) / unit; // not as a `String`: there may be no memory for one
        let (whole, part) = (hundredths / 100, hundredths % 100);
        match part {
            0 if self.0 == 1 => f.write_str("1 byte"),
            0 if self.0 as u128 == whole * unit => write!(f, "{whole} {name}"),
            1.. if part.is_multiple_of(10) => write!(f, "{whole}.{} {name}", part / 10),
            _ => write!(f, "{whole}.{part:02} {name}"),
        }
    }
}
