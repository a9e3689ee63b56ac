//! Runs the calling thread on one node: on its processors and, unless a policy was set from outside, with its memory.

use crate::numa::topology::Topology;
use crate::os::{self, Nodes, Processors, ThreadPolicy};
use crate::reason::Reason;

/// The affinity and the policy to restore.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    processors: Processors,
    policy: Option<ThreadPolicy>,
}

/// Moves this thread to `node`. Returns what [`leave`] restores and, if the memory policy was left unchanged, the reason.
///
/// # Errors
/// A message, if the node does not exist, has no processors, or none that this thread may use.
pub fn enter(node: usize) -> Result<(Before, Option<Reason>), String> {
    let machine = Topology::read();
    let Some(found) = machine.node(node) else { return Err(machine.lacks(node).unwrap_or_default()) };
    if found.processors.is_empty() {
        return Err(format!("node {node} has no processors"));
    }
    let processors = os::thread_processors().map_err(|error| format!("sched_getaffinity: errno {}", error.0))?;
    let there = found.processors.and(&processors);
    if there.is_empty() {
        return Err(format!(
            "none of node {node}'s processors ({}) is among those that this thread may use ({processors})",
            found.processors
        ));
    }
    os::run_on_processors(&there).map_err(|error| format!("sched_setaffinity: errno {}", error.0))?;
    let (policy, why_not) = prefer(node, &machine);
    Ok((Before { processors, policy }, why_not))
}

/// Sets the policy, and returns the previous one, or why it was left unchanged.
fn prefer(node: usize, machine: &Topology) -> (Option<ThreadPolicy>, Option<Reason>) {
    let policy = match os::thread_policy() {
        Ok(policy) if policy.bounds().is_some() => return (None, Some(Reason::OuterPolicy)),
        Ok(policy) => policy,
        Err(error) => return (None, Some(Reason::of(error))),
    };
    if !machine.with_memory().contains(node) {
        return (None, Some(Reason::Node));
    }
    if os::allowed_nodes().is_ok_and(|allowed| allowed.and(&Nodes::one(node)).is_empty()) {
        return (None, Some(Reason::Cpuset));
    }
    match os::prefer_node(node) {
        Ok(()) => (Some(policy), None),
        Err(error) => (None, Some(Reason::of(error))),
    }
}

/// Ends [`enter`], in the same thread.
pub fn leave(before: &Before) {
    let _ = os::run_on_processors(&before.processors); // if the cpuset has shrunk meanwhile, the thread stays where it is
    if let Some(policy) = &before.policy {
        let _ = os::restore_policy(policy);
    }
}
