//! The report for people: one line a subject, as for Python programs.

use super::figures::Figures;
use firsttouch::size::Bytes;
use firsttouch::{Stats, os};

/// Less memory than this, recycled or on huge pages, is not worth a gain.
const WORTH_MENTIONING: u64 = 1 << 20;

pub fn report(process: u32, figures: &Figures, threshold: usize) -> String {
    let mut lines = vec![("time", time(figures))];
    let pool = &figures.pool;
    if pool.allocations == 0 {
        lines.push(("large blocks", format!("none of {} or more", size(threshold as u64))));
    } else {
        let touched = pool.first_touched_small_bytes + pool.first_touched_huge_bytes;
        let recycled = share(pool.recycled as f64, pool.allocations as f64);
        lines.push(("large blocks", format!("{}, {recycled} on recycled memory", count(pool.allocations))));
        lines.push((
            "first touched",
            format!("at most {}{}, {} avoided", size(touched), on_huge(pool, touched), size(pool.recycled_bytes)),
        ));
        let (used, held) = (size(pool.peak_in_use as u64), size(pool.peak_held as u64));
        lines.push(("block memory", format!("at most {used} used, {held} held")));
    }
    if let Some((now, peak)) = figures.spent.resident {
        lines.push(("resident", format!("at most {}, {} at the end", size(peak as u64), size(now as u64))));
    }
    lines.push(("page faults", faults(figures)));
    let mut text = format!("firsttouch, process {process}:\n");
    for (name, value) in lines {
        text += &format!("  {name:13}  {value}\n");
    }
    for remark in remarks(figures, threshold) {
        text += &format!("  {remark}\n");
    }
    text
}

/// What the figures alone would leave to be guessed.
pub fn remarks(figures: &Figures, threshold: usize) -> Vec<String> {
    let mut said = Vec::new();
    if figures.spent.children > figures.spent.usage.user + figures.spent.usage.kernel {
        let used = seconds(figures.spent.children); // of the program, so what this process gained says little
        said.push(format!(
            "child processes used {used} and are not in this report; --json with %p in the file name reports on each"
        ));
    } else if figures.pool.allocations == 0 {
        said.push(format!("nothing gained: the program allocates no blocks of {} or more", size(threshold as u64)));
    } else if figures.pool.recycled_bytes + figures.pool.first_touched_huge_bytes < WORTH_MENTIONING {
        said.push("nothing gained: hardly any large block is allocated after one was freed".to_owned());
    }
    said
}

fn time(figures: &Figures) -> String {
    let used = figures.spent.usage.user + figures.spent.usage.kernel;
    let kernel = figures.spent.usage.kernel;
    let (wall, all, in_kernel) = (seconds(figures.spent.wall), seconds(used), seconds(kernel));
    format!("{wall}; processor time {all}, {in_kernel} ({}) in the kernel", share(kernel, used))
}

fn on_huge(pool: &Stats, touched: u64) -> String {
    match pool.first_touched_huge_bytes {
        0 => String::new(),
        huge => format!(" ({} on huge pages)", share(huge as f64, touched as f64)),
    }
}

/// A huge page takes one fault where the C library takes one for each of its base pages.
fn faults(figures: &Figures) -> String {
    let (page, huge_page) = (os::page_size() as u64, os::huge_page_size().unwrap_or(usize::MAX) as u64);
    let huge = figures.pool.first_touched_huge_bytes;
    let avoided = (figures.pool.recycled_bytes + huge) / page - huge / huge_page;
    let taken = count(figures.spent.usage.minor_faults);
    if avoided == 0 { taken } else { format!("{taken}; at most {} avoided", count(avoided)) }
}

fn size(bytes: u64) -> Bytes {
    Bytes(bytes as usize)
}

fn seconds(amount: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")];
    if amount <= 0.0 {
        return "0 s".to_owned();
    }
    let (unit, name) = UNITS.into_iter().find(|(unit, _)| amount >= *unit).unwrap_or(UNITS[3]);
    let value = amount / unit;
    let decimals = if value >= 100.0 { 0 } else { 1 + usize::from(value < 10.0) };
    format!("{value:.decimals$} {name}")
}

fn share(part: f64, whole: f64) -> String {
    let percent = if whole > 0.0 { 100.0 * part / whole } else { 0.0 };
    let whole_number = (10.0..=90.0).contains(&percent) || percent == 0.0 || percent > 99.95;
    format!("{percent:.*} %", usize::from(!whole_number))
}

fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
