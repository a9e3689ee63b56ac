//! NUMA nodes. Windows takes a node when memory is mapped, and then prefers it; policies of pages it has none.
//!
//! Processors have the numbers that [`current_processor`](super::current_processor) gives them: 64 for each group.

use super::memory::check;
use crate::os::types::{Errno, Processors};
use windows_sys::Win32::System::SystemInformation::GROUP_AFFINITY;
use windows_sys::Win32::System::Threading::{
    GetCurrentProcessorNumberEx, GetCurrentThread, GetNumaAvailableMemoryNodeEx, GetNumaHighestNodeNumber,
    GetNumaNodeProcessorMaskEx, GetNumaProcessorNodeEx, GetThreadGroupAffinity, SetThreadGroupAffinity,
};

const GROUP: usize = 64;

fn processors_of(mask: GROUP_AFFINITY) -> Processors {
    let first = usize::from(mask.Group) * GROUP;
    (0..GROUP).filter(|at| mask.Mask >> at & 1 == 1).map(|at| first + at).collect()
}

/// The processors of the group that has the first of a set: a thread runs in one group.
fn mask_of(set: &Processors) -> Option<GROUP_AFFINITY> {
    let group = set.iter().next()? / GROUP;
    Some(GROUP_AFFINITY { Mask: set.0[group] as usize, Group: group as u16, Reserved: [0; 3] })
}

fn highest() -> u32 {
    let mut node = 0;
    // SAFETY: the system writes one number.
    unsafe { GetNumaHighestNodeNumber(&mut node) };
    node
}

/// Returns the processors of a node and its free bytes, if there are several nodes and this is one of them.
pub fn node(number: usize) -> Option<(Processors, usize)> {
    if highest() == 0 || number > highest() as usize {
        return None;
    }
    let (mut mask, mut free) = (GROUP_AFFINITY::default(), 0);
    // SAFETY: the system writes a mask and a number.
    unsafe {
        check(GetNumaNodeProcessorMaskEx(number as u16, &mut mask)).ok()?;
        check(GetNumaAvailableMemoryNodeEx(number as u16, &mut free)).ok()?;
    }
    Some((processors_of(mask), free as usize))
}

/// Returns the only node, if there is only one.
pub fn only_node() -> Option<usize> {
    (highest() == 0).then_some(0)
}

/// Returns the node of the processor that runs this thread.
pub fn current_node() -> usize {
    let mut node = 0;
    // SAFETY: a processor's number of zero bytes is valid; the system writes it, and the number of a node.
    let found = unsafe {
        let mut number = std::mem::zeroed();
        GetCurrentProcessorNumberEx(&mut number);
        GetNumaProcessorNodeEx(&number, &mut node)
    };
    if found != 0 { usize::from(node) } else { 0 }
}

/// Returns the processors that this thread may run on.
///
/// # Errors
/// If the system does not tell.
pub fn thread_processors() -> Result<Processors, Errno> {
    let mut mask = GROUP_AFFINITY::default();
    // SAFETY: the system writes a mask.
    check(unsafe { GetThreadGroupAffinity(GetCurrentThread(), &mut mask) })?;
    Ok(processors_of(mask))
}

/// Lets this thread run only on those of a set that belong to the group of the first.
///
/// # Errors
/// If none of them may be used.
pub fn run_on_processors(set: &Processors) -> Result<(), Errno> {
    let mask = mask_of(set).ok_or(Errno::INVALID)?;
    // SAFETY: the system reads the mask.
    check(unsafe { SetThreadGroupAffinity(GetCurrentThread(), &mask, std::ptr::null_mut()) })
}

#[cfg(test)]
mod tests {
    use super::{mask_of, processors_of};
    use crate::os::types::Processors;

    #[test]
    fn processors_are_numbered_group_by_group() {
        for (text, group, mask) in [("0-1", 0, 3), ("63", 0, 1 << 63), ("64,66", 1, 5), ("128", 2, 1)] {
            let set = Processors::parse(text).unwrap();
            let found = mask_of(&set).unwrap();
            assert_eq!((found.Group, found.Mask, processors_of(found)), (group, mask, set), "{text}");
        }
        assert!(mask_of(&Processors::EMPTY).is_none());
    }
}
