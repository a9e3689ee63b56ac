//! The arrays that fill a budget, by the lines that made them, for the message of a refused request.

use super::Noted;
use crate::heap::ledger::Ledger;
use std::fmt::Write;

/// From this size on the line that makes a block is recorded: it costs a fraction of touching the block once.
pub const FROM: usize = 1 << 20;
/// Lines that are listed.
const SHOWN: usize = 10;

/// How a front finds the line of its program that makes a request.
#[derive(Clone, Copy)]
pub struct CallSites {
    /// A number for the line; 0 where there is none.
    pub site: fn() -> u64,
    /// The file and the line of such a number, as in `model.py:41`.
    pub place: fn(u64) -> Option<String>,
}

/// The blocks of one line.
#[derive(Clone, Copy, Default)]
struct Line {
    site: u64,
    blocks: usize,
    bytes: usize,
    largest: usize,
}

/// The lines whose blocks hold the most bytes, one in a row; nothing where there is no block, or no memory for the list.
pub fn listed(ledger: &Ledger<Noted>, call_sites: Option<CallSites>) -> String {
    let mut blocks: Vec<Noted> = Vec::new();
    let mut smaller = Line::default();
    let mut complete = true;
    ledger.each(|_, note| {
        if note.asked < FROM {
            smaller.add(note);
        } else if blocks.try_reserve(1).is_ok() {
            blocks.push(note);
        } else {
            complete = false;
        }
    });
    if !complete || (blocks.is_empty() && smaller.blocks == 0) {
        return String::new();
    }
    blocks.sort_unstable_by_key(|note| note.site);
    let mut lines: Vec<Line> = Vec::new();
    for note in blocks {
        if let Some(line) = lines.last_mut().filter(|line| line.site == note.site) {
            line.add(note);
        } else if lines.try_reserve(1).is_ok() {
            lines.push(Line::of(note));
        } else {
            return String::new();
        }
    }
    lines.sort_unstable_by_key(|line| std::cmp::Reverse(line.bytes));
    let mut text = String::from("\n  the largest living arrays:");
    for line in lines.iter().take(SHOWN) {
        let place = call_sites.and_then(|sites| (sites.place)(line.site)).unwrap_or_else(|| "an unknown line".into());
        row(&mut text, *line, &place);
    }
    let others = lines.iter().skip(SHOWN).fold(Line::default(), |all, line| all.and(*line));
    row(&mut text, others, "other lines");
    row(&mut text, smaller, "arrays below 1 MiB, whose lines are not recorded");
    text
}

impl Line {
    fn of(note: Noted) -> Self {
        Self { site: note.site, blocks: 1, bytes: note.asked, largest: note.asked }
    }

    fn add(&mut self, note: Noted) {
        *self = self.and(Self::of(note));
    }

    fn and(self, other: Self) -> Self {
        Self {
            site: self.site,
            blocks: self.blocks + other.blocks,
            bytes: self.bytes + other.bytes,
            largest: self.largest.max(other.largest),
        }
    }
}

fn row(text: &mut String, line: Line, place: &str) {
    let Line { blocks, bytes, largest, .. } = line;
    let _ = match blocks {
        0 => Ok(()),
        1 => write!(text, "\n    {:>10.1} MiB  {place}", mib(bytes)),
        _ => write!(
            text,
            "\n    {:>10.1} MiB  {place} ({blocks} arrays, the largest has {:.1} MiB)",
            mib(bytes),
            mib(largest)
        ),
    };
}

fn mib(bytes: usize) -> f64 {
    bytes as f64 / (1 << 20) as f64
}
