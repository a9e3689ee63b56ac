//! The limits of cgroups, of version 1 and 2, with those of all their ancestors. Nothing here uses the global allocator, so
//! that the background purger may call it.

use super::kernel_files::{read, read_number, stopped};
use super::kernel_texts::{self, number};
use std::ffi::CStr;

/// The limit of a memory cgroup and its use, in bytes.
pub(super) struct Group {
    pub limit: usize,
    /// Without inactive file pages.
    pub used: usize,
    /// The part of `used` that is active file pages.
    pub active_file: usize,
}

impl Group {
    fn left(&self) -> usize {
        self.limit.saturating_sub(self.used)
    }
}

/// Returns the tightest limit of the memory cgroups, and its use, in bytes.
pub(super) fn cgroup() -> Option<Group> {
    if stopped() { None } else { tightest() }
}

#[inline(never)] // its buffers are not for the small stacks of a foreign program's threads
fn tightest() -> Option<Group> {
    let mut least: Option<Group> = None;
    visit(|root, group| {
        if let Some(found) = bounds(root, group)
            && least.as_ref().is_none_or(|least| found.left() < least.left())
        {
            least = Some(found);
        }
    });
    least
}

/// Calls a function with every folder and path that a group and its ancestors may have. Inside a container its own cgroup
/// is mounted at the root; outside, /proc/self/cgroup names it.
fn visit(mut function: impl FnMut(&str, &str)) {
    let mut buffer = [0; 4096];
    for line in read(c"/proc/self/cgroup", &mut buffer).unwrap_or_default().lines() {
        let Some((roots, group)) = kernel_texts::group(line) else { continue };
        for root in roots {
            let mut group = group;
            loop {
                function(root, group.trim_end_matches('/'));
                match group.rfind('/') {
                    Some(end) => group = &group[..end],
                    None => break,
                }
            }
        }
    }
}

fn bounds(root: &str, group: &str) -> Option<Group> {
    let first = |names: [&str; 2]| names.iter().find_map(|name| read_joined(&[root, group, "/", name]));
    let limit = first(["memory.max", "memory.limit_in_bytes"]).filter(|&limit| limit < usize::MAX >> 2)?;
    let used = first(["memory.current", "memory.usage_in_bytes"])?;
    let (inactive_file, active_file) = file_pages(root, group).unwrap_or_default();
    Some(Group { limit, used: used.saturating_sub(inactive_file), active_file })
}

/// The inactive and the active file pages of a group and the groups below it. The kernel reclaims inactive ones before the
/// group runs out of memory, and active ones after those.
fn file_pages(root: &str, group: &str) -> Option<(usize, usize)> {
    let mut path = [0; 4096];
    let mut buffer = [0; 8192];
    let text = read(join(&mut path, &[root, group, "/memory.stat"])?, &mut buffer)?;
    let value = |name: &str| text.lines().find_map(|line| number(line.strip_prefix(name)?));
    let both = |first, second| value(first).or_else(|| value(second));
    let active = both("total_active_file ", "active_file ").unwrap_or(0);
    Some((both("total_inactive_file ", "inactive_file ")?, active))
}

fn read_joined(parts: &[&str]) -> Option<usize> {
    read_number(join(&mut [0; 4096], parts)?)
}

fn join<'a>(path: &'a mut [u8; 4096], parts: &[&str]) -> Option<&'a CStr> {
    let mut end = 0;
    for part in parts {
        path.get_mut(end..end + part.len())?.copy_from_slice(part.as_bytes());
        end += part.len();
    }
    CStr::from_bytes_until_nul(path.get(..=end)?).ok()
}
