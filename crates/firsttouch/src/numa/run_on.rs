//! The calling thread on one node: its processors and, where nothing else was decided outside, its memory.

use crate::numa::topology::Topology;
use crate::os::{self, Nodes, Processors, ThreadPolicy};
use crate::pages::receipt::Reason;

/// What was in force before.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    processors: Processors,
    policy: Option<ThreadPolicy>,
}

/// Sends this thread to `node`; what was before, and why its memory policy stays, where it does.
///
/// # Errors
/// A message, where there is no such node, where it has no processors, or where none of them may be used.
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

/// The policy that was before, if another is in force now; else why not.
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
    let _ = os::run_on_processors(&before.processors); // a cpuset that has shrunk meanwhile keeps the thread where it is
    if let Some(policy) = &before.policy {
        let _ = os::restore_policy(policy);
    }
}
