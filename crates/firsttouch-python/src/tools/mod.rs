//! Native functions of the command line's tools: the bounds of memory, recording and summarizing traces,
//! profiling regions, what lies in the memory of a process.

#[cfg(target_os = "linux")]
pub mod heaps;
pub mod machine;
pub mod profile;
pub mod trace;
