//! Page sizes, prefaulting threads, and NUMA policies.

use super::wrong_type;
use crate::description::Value;
use crate::factory::{Error, Given};
use crate::numa::policy::Policy;
use crate::numa::topology::Topology;
use crate::pages::placement::Page;

/// The most page sizes that may be given.
const SIZES: usize = 4;
/// The most threads that may prefault.
const THREADS: i128 = 1024;

/// Checks `False`, a page size of this machine, or several of them, of which `False` is the last.
///
/// # Errors
/// If it is neither.
pub fn page_sizes(name: &str, given: &Given) -> Result<Value, Error> {
    let wrong = |why: &str| {
        Error::Value(format!(
            "{name}={}: give False or \"thp\" (transparent huge pages), a size of explicit ones, or several of these in \
             the order of preference, like (\"1G\", \"2M\", \"thp\"){why}",
            given.shown()
        ))
    };
    let page = |value: &Value| match value {
        Value::Text(text) if !text.is_empty() => {
            Page::parse(text).map(|page| page.value()).map_err(|why| wrong(&format!(" ({why})")))
        }
        _ => Err(wrong("")),
    };
    match given {
        Given::Value(Value::Flag(false)) => Ok(Value::Flag(false)),
        Given::Value(Value::Several(wishes)) if !wishes.is_empty() => {
            let base = Value::Flag(false);
            let named = wishes.iter().take_while(|&wish| *wish != base).map(page);
            let mut sizes = named.collect::<Result<Vec<_>, _>>()?;
            sizes.extend(wishes.contains(&base).then_some(base));
            match sizes.len() {
                1 => Ok(sizes.swap_remove(0)),
                2..=SIZES => Ok(Value::Several(sizes)),
                _ => Err(Error::Value(format!("{name}={}: give at most four", given.shown()))),
            }
        }
        Given::Value(value) => page(value),
        _ => Err(wrong("")),
    }
}

/// Checks `False`, `True`, or a number of threads.
///
/// # Errors
/// If it is neither.
pub fn threads(name: &str, given: &Given) -> Result<Value, Error> {
    let wanted = "False, True, or a number of threads from 1 to 1024";
    match given {
        Given::Value(Value::Flag(flag)) => Ok(Value::Flag(*flag)),
        Given::Value(Value::Integer(threads @ 1..=THREADS)) => Ok(Value::Integer(*threads)),
        Given::Value(Value::Integer(_)) => Err(Error::Value(format!("{name}={}: give {wanted}", given.shown()))),
        _ => Err(wrong_type(name, given, wanted)),
    }
}

/// Checks a node number, or a policy as text, of this machine.
///
/// # Errors
/// If it is neither, or the machine has no such node.
pub fn policy(name: &str, given: &Given) -> Result<Policy, Error> {
    let text = match given {
        Given::Value(Value::Text(text)) => text.to_string(),
        Given::Value(Value::Integer(node)) => node.to_string(),
        _ => return Err(wrong_type(name, given, "a node's number, text like \"bind:0-1\" or a policy")),
    };
    let found = Policy::parse(&text).and_then(|policy| policy.check(&Topology::read()).map(|()| policy));
    found.map_err(|why| Error::Value(format!("{name}={}: {why}", given.shown())))
}
