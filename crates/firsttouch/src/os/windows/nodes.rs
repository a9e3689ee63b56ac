//! NUMA nodes. Windows takes a node when memory is mapped, and then prefers it; policies of pages it has none.
//!
//! Processors have the numbers that [`current_processor`](super::current_processor) gives them: 64 for each group.

use super::memory::check;
use crate::os::types::{Errno, Processors};
use windows_sys::Win32::System::SystemInformation::GROUP_AFFINITY;
use windows_sys::Win32::System::Threading::{
    GetCurrentProcessorNumberEx, GetCurrentThread, GetNumaAvailableMemoryNodeEx, GetNumaHighestNodeNumber,
    GetNumaNodeProcessorMaskEx, GetNumaProcessorNodeEx, GetThreadGroupAffinity,
};

const GROUP: usize = 64;

fn processors_of(mask: GROUP_AFFINITY) -> Processors {
    let first = usize::from(mask.Group) * GROUP;
    (0..GROUP).filter(|at| mask.Mask >> at & 1 == 1).map(|at| first + at).collect()
}

fn highest() -> u32 {
    let mut node = 0;
    // SAFETY: the system writes one number.
    unsafe { GetNumaHighestNodeNumber(&mut node) };
    node
}

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

pub fn only_node() -> Option<usize> {
    (highest() == 0).then_some(0)
}

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

pub fn thread_processors() -> Result<Processors, Errno> {
    let mut mask = GROUP_AFFINITY::default();
    // SAFETY: the system writes a mask.
    check(unsafe { GetThreadGroupAffinity(GetCurrentThread(), &mut mask) })?;
    Ok(processors_of(mask))
}
