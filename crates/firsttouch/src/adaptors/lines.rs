//! The lines of a program whose blocks fill a budget: a front finds the line that makes a block, and the largest are listed.

use super::limited::Charge;
use crate::ledger::Ledger;
use crate::sync::{OnceBox, thread};
use std::cell::Cell;
use std::fmt::Write;

/// How a front finds the line of its program that makes a request.
#[derive(Clone, Copy)]
pub struct CallSites {
    /// A number for the line; 0 where there is none.
    pub site: fn() -> u64,
    /// The file and the line of such a number, as in `model.py:41`.
    pub place: fn(u64) -> Option<String>,
}

static CALL_SITES: OnceBox<CallSites> = OnceBox::new();

/// Registers how source lines are found, for the messages of `limited`. The first is kept.
pub fn set_call_sites(call_sites: CallSites) {
    let _ = CALL_SITES.set(Box::new(call_sites));
}

/// From this size on the line that makes a block is recorded: it costs a fraction of touching the block once. Such requests
/// also have limits read again and accounts written, if it is time.
pub const LINES_FROM: usize = 128 << 10;
/// Of so many smaller blocks, the line of one is recorded, and stands for the others.
const SAMPLED: usize = 16;
const NOT_SAMPLED: u64 = u64::MAX;

/// The number of the line that makes a block now, 0 where there is none, or [`NOT_SAMPLED`].
pub(super) fn site(asked: usize) -> u64 {
    let is_listed = asked >= LINES_FROM || is_sampled();
    if is_listed { CALL_SITES.get().map_or(0, |sites| (sites.site)()) } else { NOT_SAMPLED }
}

/// Whether the line of a small block is recorded: at random, as programs make blocks in turns, and threads the same ones.
pub fn is_sampled() -> bool {
    thread_local!(static LAST: Cell<u32> = Cell::new(thread() as u32));
    let next = LAST.get().wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    LAST.set(next);
    ((next >> 16) as usize).is_multiple_of(SAMPLED)
}

/// Lines that are listed.
const SHOWN: usize = 10;

/// The blocks of one line.
struct Line {
    site: u64,
    blocks: usize,
    bytes: usize,
}

/// The lines whose blocks hold the most bytes, one in a row; nothing where there is no block, or no memory for the list.
pub(super) fn listed(ledger: &Ledger<Charge>) -> String {
    let (mut lines, mut is_complete) = (Vec::<Line>::new(), true);
    ledger.each(|_, Charge { asked, site, .. }| {
        let blocks = if asked < LINES_FROM { SAMPLED } else { 1 };
        let bytes = blocks * asked;
        match lines.binary_search_by_key(&site, |line| line.site) {
            _ if site == NOT_SAMPLED => {}
            Ok(at) => {
                lines[at].blocks += blocks;
                lines[at].bytes += bytes;
            }
            Err(at) if lines.try_reserve(1).is_ok() => lines.insert(at, Line { site, blocks, bytes }),
            Err(_) => is_complete = false,
        }
    });
    if !is_complete || lines.is_empty() {
        return String::new();
    }
    lines.sort_unstable_by_key(|line| std::cmp::Reverse(line.bytes));
    let mut text = String::from("\n  the largest living blocks:");
    for line in lines.iter().take(SHOWN) {
        let place = CALL_SITES.get().and_then(|sites| (sites.place)(line.site));
        row(&mut text, line.blocks, line.bytes, place.as_deref().unwrap_or("an unknown line"));
    }
    let others = &lines[lines.len().min(SHOWN)..];
    let sum = |of: fn(&Line) -> usize| others.iter().map(of).sum();
    row(&mut text, sum(|line| line.blocks), sum(|line| line.bytes), "other lines");
    text
}

fn row(text: &mut String, blocks: usize, bytes: usize, place: &str) {
    let mib = bytes as f64 / (1 << 20) as f64;
    let _ = match blocks {
        0 => Ok(()),
        1 => write!(text, "\n    {mib:>10.1} MiB  {place}"),
        _ => write!(text, "\n    {mib:>10.1} MiB  {place} ({blocks} blocks)"),
    };
}
