//! Fault-ahead: large fresh blocks are populated by a second thread just ahead of the thread that uses them.
//!
//! It is to page faults what the kernel's read-ahead is to files. Nothing is populated until a program has written the
//! first pages of a block in a row, from either end. Then the granules that follow are shared: every third (of huge pages,
//! every second) is left to the program, and the others are populated. Once one that was left is found written, the program has
//! come there, and those after the next are populated. So sparse blocks and blocks that are only read take no more memory,
//! and a program that stops has cost at most what the thread is ahead: 8 MiB, or a huge page.
//!
//! | file | |
//! |---|---|
//! | `block` | the progress of one block: what to look at, what to populate |
//! | `node` | the node that its pages come from |
//! | `seen` | what the system tells of pages |
//! | `spare` | whether there is a processor and memory for it |
//! | `known` | how the thread goes on with a block |
//! | `list` | the blocks that are helped |
//! | `helper` | the thread |

#![allow(unsafe_code)] // Safety: pages are populated while their block is on the list, which its owner ends before a free.

mod block;
mod helper;
mod known;
mod list;
mod node;
mod seen;
mod spare;

pub(crate) use helper::{hold, is_supported, release, watch};
pub use known::populated_bytes;
pub(crate) use list::{forget, restart};

/// Smaller blocks are written in less time than it takes to notice.
pub(crate) const MIN: usize = 16 << 20;
