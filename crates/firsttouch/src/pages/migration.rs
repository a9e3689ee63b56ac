//! Resident pages: their nodes, and migration to others.

use crate::numa::Binding;
use crate::os::{self, Errno, Mode};
use crate::reason::Reason;

/// Pages queried by one call.
const BATCH: usize = 8192;

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

/// The node of every page in a range, or the kernel's error as a negative number: -2 (ENOENT) and -14 (EFAULT) mean
/// that no page of our own is there.
///
/// # Errors
/// If the kernel or the container does not permit the query.
pub fn nodes_of(address: usize, size: usize) -> Result<Vec<i32>, Errno> {
    let pages: Vec<usize> = (address..address + size).step_by(os::page_size()).collect();
    let mut nodes = vec![0; pages.len()];
    os::move_pages(&pages, None, &mut nodes)?;
    Ok(nodes)
}

/// Migrates the pages of a range according to `binding`.
///
/// # Errors
/// If the kernel or the container does not permit migration.
pub fn migrate(range: (usize, usize), binding: &Binding) -> Result<Migration, Errno> {
    let page = os::page_size();
    let (start, size) = whole_pages(range.0, range.1);
    let targets: Vec<usize> = match binding.mode {
        Mode::Local => vec![os::current_node()],
        _ => binding.nodes.iter().collect(),
    };
    let exactly = matches!(binding.mode, Mode::Interleave | Mode::Local);
    // A huge page is moved as a whole; page by page it would move back and forth.
    let has_huge = || os::sizes_of_pages(&(start..start + size)).is_some_and(|[huge, ..]| huge > 0);
    let huge = binding.mode == Mode::Interleave && has_huge();
    let unit = os::huge_page_size().filter(|_| huge).unwrap_or(page);
    // The address of a page on a wrong node, and the right node.
    let astray = |(address, node): (usize, i32)| {
        let target = targets[address / unit % targets.len()] as i32;
        let wrong = if exactly { node != target } else { !binding.nodes.contains(node as usize) };
        (node >= 0 && wrong).then_some((address, target))
    };
    let mut sum = Migration::default();
    for from in (0..size).step_by(BATCH * page) {
        let (first, len) = (start + from, (BATCH * page).min(size - from));
        let before = nodes_of(first, len)?;
        let pages = (first..).step_by(page);
        let (wrong, nodes): (Vec<usize>, Vec<i32>) =
            pages.clone().zip(before.iter().copied()).filter_map(astray).unzip();
        let mut status = vec![0; wrong.len()];
        if !wrong.is_empty() {
            os::move_pages(&wrong, Some(&nodes), &mut status)?;
        }
        let after = nodes_of(first, len)?;
        let stuck = pages.zip(after.iter().copied()).filter_map(astray).count();
        if stuck > 0 {
            let error = status.iter().rfind(|&&status| status < 0).map_or(0, |status| -status);
            (sum.failed, sum.why_not) = (sum.failed + stuck * page, Some(Reason::of(Errno(error))));
        }
        sum.absent += after.iter().filter(|&&node| node < 0).count() * page;
        sum.moved += before.iter().zip(&after).filter(|&(a, b)| a != b && *b >= 0).count() * page;
    }
    sum.stayed = size.saturating_sub(sum.absent + sum.moved + sum.failed);
    Ok(sum)
}
