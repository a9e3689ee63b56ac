//! Resident pages: their nodes, and migration to others.

use crate::numa::policy::Orders;
use crate::os::{self, Errno, Mapping, Mode};
use crate::pages::receipt::Reason;

/// Pages queried by one call.
const BATCH: usize = 8192;
/// The number of attempts for a page that is pinned for a moment.
const TRIES: usize = 3;

/// The outcome of a migration, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Migration {
    /// Moved to their node.
    pub moved: usize,
    /// On their node before.
    pub stayed: usize,
    /// Not resident, or the shared zero page.
    pub absent: usize,
    /// Could not be moved.
    pub failed: usize,
    /// Why the last of these could not be moved.
    pub why_not: Option<Reason>,
}

/// The whole pages that a range of bytes lies on.
pub fn whole_pages(address: usize, size: usize) -> (usize, usize) {
    let page = os::page_size();
    let start = address & !(page - 1);
    (start, if size == 0 { 0 } else { (address + size).next_multiple_of(page) - start })
}

/// Bytes of whole pages that are not resident and those that are available, if these are fewer. Explicit huge pages are ready
/// in the kernel's pool.
pub fn lacking(address: usize, size: usize) -> Option<(usize, usize)> {
    let (missing, available) = (missing(address, size), os::headroom());
    let is_explicit = || any_mapping(address, address + size, |mapping| mapping.page > os::page_size());
    (missing > available && !is_explicit()).then_some((missing, available))
}

/// Bytes of whole pages that are not resident; all bytes if the kernel does not tell.
fn missing(address: usize, size: usize) -> usize {
    const PAGES: usize = 4096;
    let (page, mut there) = (os::page_size(), 0);
    for from in (0..size).step_by(PAGES * page) {
        there += os::resident_pages(address + from, (PAGES * page).min(size - from)).unwrap_or(0) * page;
    }
    size.saturating_sub(there)
}

/// The node of every page in a range, or the kernel's error as a negative number: -2 (ENOENT) and -14 (EFAULT) mean
/// that no page of our own is there.
///
/// # Errors
/// If the kernel or the container does not permit the query.
pub fn nodes_of(address: usize, size: usize) -> Result<Vec<i32>, Errno> {
    let page = os::page_size();
    let mut nodes = Vec::new();
    nodes.try_reserve_exact(size.div_ceil(page)).map_err(|_| Errno::NO_MEMORY)?;
    nodes.resize(size.div_ceil(page), 0);
    for (at, part) in nodes.chunks_mut(BATCH).enumerate() {
        let pages: Vec<usize> = (0..part.len()).map(|n| address + (at * BATCH + n) * page).collect();
        os::move_pages(&pages, None, part)?;
    }
    Ok(nodes)
}

/// Migrates the pages of a range according to `orders`.
///
/// # Errors
/// If the kernel or the container does not permit migration.
pub fn migrate(range: (usize, usize), orders: &Orders) -> Result<Migration, Errno> {
    let page = os::page_size();
    let (start, size) = whole_pages(range.0, range.1);
    let targets: Vec<usize> = orders.nodes.iter().collect();
    // A huge page is moved as a whole; page by page it would move back and forth.
    let unit = if orders.mode == Mode::Interleave && has_huge_pages(start, start + size) {
        os::huge_page_size().unwrap_or(page)
    } else {
        page
    };
    let mut sum = Migration::default();
    for from in (0..size).step_by(BATCH * page) {
        let (first, len) = (start + from, (BATCH * page).min(size - from));
        let before = nodes_of(first, len)?;
        for tries in 1..=TRIES {
            let mut left: Vec<(usize, i32)> = Vec::new();
            for (at, node) in nodes_of(first, len)?.into_iter().enumerate().filter(|&(_, node)| node >= 0) {
                let address = first + at * page;
                let to = match orders.mode {
                    Mode::Interleave => targets.get(address / unit % targets.len()).copied(),
                    Mode::Local => Some(os::current_node()),
                    _ => None,
                };
                if to.is_some_and(|to| to as i32 != node) || !orders.nodes.contains(node as usize) {
                    left.push((address, to.unwrap_or(targets[address / unit % targets.len()]) as i32));
                }
            }
            if left.is_empty() {
                break;
            }
            let (pages, nodes): (Vec<usize>, Vec<i32>) = left.into_iter().unzip();
            let mut status = vec![0; pages.len()];
            os::move_pages(&pages, Some(&nodes), &mut status)?;
            let mut found = vec![0; pages.len()];
            os::move_pages(&pages, None, &mut found)?;
            let stuck: Vec<i32> = (0..pages.len()).filter(|&at| found[at] != nodes[at]).map(|at| status[at]).collect();
            if stuck.is_empty() {
                break;
            }
            if tries == TRIES {
                sum.failed += stuck.len() * page;
                sum.why_not = stuck.last().map(|&status| Reason::of(Errno(-status.min(0))));
            }
        }
        let after = nodes_of(first, len)?;
        sum.absent += after.iter().filter(|&&node| node < 0).count() * page;
        sum.moved += before.iter().zip(&after).filter(|&(a, b)| a != b && *b >= 0).count() * page;
    }
    sum.stayed = size.saturating_sub(sum.absent + sum.moved + sum.failed);
    Ok(sum)
}

/// Whether any mapping between two addresses has transparent huge pages.
fn has_huge_pages(start: usize, end: usize) -> bool {
    any_mapping(start, end, |mapping| mapping.huge > 0)
}

fn any_mapping(start: usize, end: usize, is_wanted: impl FnMut(&Mapping) -> bool) -> bool {
    os::mappings(&(start..end), true).is_ok_and(|found| found.iter().any(is_wanted))
}
