//! Whether memory is shared with other processes, and which memory that is.

use super::SharedPart;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;

/// Whether `address` lies in a mapping that forked children share; `false` where the system does not tell.
pub fn is_shared(address: usize) -> bool {
    !shared_parts(address..address + 1).is_empty()
}

/// What of a range lies in shared mappings, and what they map; nothing where the system does not tell.
pub fn shared_parts(range: Range<usize>) -> Vec<SharedPart> {
    let Ok(maps) = File::open("/proc/self/maps") else { return Vec::new() };
    BufReader::new(maps).lines().map_while(Result::ok).filter_map(|line| part(&line, &range)).collect()
}

/// What a line like `7f00-7f80 rw-s 00001000 00:05 1234 NAME` says of a range, where its mapping is shared.
fn part(line: &str, range: &Range<usize>) -> Option<SharedPart> {
    let mut fields = line.split_ascii_whitespace();
    let (from, to) = fields.next()?.split_once('-')?;
    let [from, to] = [from, to].map(|text| usize::from_str_radix(text, 16).ok());
    let (from, start, end) = (from?, from?.max(range.start), to?.min(range.end));
    if start >= end || fields.next()?.as_bytes().get(3) != Some(&b's') {
        return None;
    }
    let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let file = format!("{} {}", fields.next()?, fields.next()?);
    let byte = |address: usize| offset + (address - from) as u64;
    Some(SharedPart { file, bytes: byte(start)..byte(end) })
}
