//! Machines with several memory nodes: topology, policies, and which node is local to a processor.

#![allow(unsafe_code)] // Safety: policies are set on ranges that their callers own.

pub mod axis;
pub(crate) mod homes;
pub(crate) mod orders;
pub mod policy;
pub mod run_on;
pub mod topology;
