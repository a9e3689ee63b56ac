//! Machines with several NUMA nodes: topology and policies.

#![allow(unsafe_code)] // Safety: policies are set on ranges that belong to the callers.

pub mod policy;
pub mod topology;
