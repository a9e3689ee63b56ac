//! Machines with several NUMA nodes: topology, policies, and the nodes local to a processor.

#![allow(unsafe_code)] // Safety: policies are set on ranges that belong to the callers.

pub(crate) mod local_nodes;
pub mod policy;
pub mod topology;
