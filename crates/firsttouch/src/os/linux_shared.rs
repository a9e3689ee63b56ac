//! Whether memory is shared with other processes.

use std::fs::File;
use std::io::{BufRead, BufReader};

/// Whether `address` lies in a mapping that forked children share; `false` where the system does not tell.
pub fn is_shared(address: usize) -> bool {
    let Ok(maps) = File::open("/proc/self/maps") else { return false };
    BufReader::new(maps).lines().map_while(Result::ok).any(|line| holds(&line, address) == Some(true))
}

/// Whether a line like `7f00-7f80 rw-s ...` is of a mapping around `address`, and shared.
fn holds(line: &str, address: usize) -> Option<bool> {
    let (range, rest) = line.split_once(' ')?;
    let (from, to) = range.split_once('-')?;
    let bounds = [from, to].map(|text| usize::from_str_radix(text, 16).ok());
    Some((bounds[0]?..bounds[1]?).contains(&address) && rest.as_bytes().get(3) == Some(&b's'))
}
