//! Machines with several NUMA nodes: topology, policies, and the nodes local to a processor.

#![allow(unsafe_code)] // Safety: policies are set on ranges that belong to the callers.

pub mod axis;
pub(crate) mod local_nodes;
pub(crate) mod orders;
pub mod policy;
pub mod run_on;
pub mod topology;
