//! The loop of `firsttouch bench scratch` in Rust: a loop in Python would mostly time its calls.

use crate::python::errors::{PyMemoryError, PyValueError};
use firsttouch::arena::{Arena, ArenaError, Upstream};
use pyo3::prelude::*;
use std::cell::RefCell;
use std::hint::black_box;
use std::time::Instant;

thread_local! {
    static DEFAULT: RefCell<Arena<'static>> = RefCell::new(Arena::new());
}

/// Returns the sum of what was just written, which the compiler cannot predict.
fn sum(y: &[i64]) -> i64 {
    black_box(y).iter().sum()
}

fn heap(x: &[i64]) -> i64 {
    sum(&x.iter().map(|x| x + 1).collect::<Vec<i64>>())
}

fn kept(y: &mut [i64], x: &[i64]) -> i64 {
    y.iter_mut().zip(x).for_each(|(y, x)| *y = x + 1);
    sum(y)
}

fn scope(arena: &mut Arena, x: &[i64]) -> Result<i64, ArenaError> {
    arena.scope(|s| Ok(sum(s.alloc_slice_with(x.len(), |i| x[i] + 1)?)))
}

/// Runs `count` iterations; returns the seconds and the last sum.
fn turns(count: usize, mut turn: impl FnMut() -> Result<i64, ArenaError>) -> Result<(f64, i64), ArenaError> {
    let began = Instant::now();
    let mut last = 0;
    for _ in 0..count {
        last = turn()?;
    }
    Ok((began.elapsed().as_secs_f64(), last))
}

/// Returns the seconds of `count` iterations of `y = x + 1; sum(y)` with `y` in scratch memory or elsewhere, and the
/// sum.
#[pyfunction]
fn scratch_turns(py: Python<'_>, way: &str, items: usize, count: usize) -> PyResult<(f64, i64)> {
    let x: Vec<i64> = (0..items as i64).collect();
    let x = || black_box(&x[..]);
    let done = py.detach(|| match way {
        "heap" => Some(turns(count, || Ok(heap(x())))),
        "default buffer" => Some(turns(count, || DEFAULT.with_borrow_mut(|arena| scope(arena, x())))),
        "explicit buffer" => {
            let mut arena = Arena::new();
            Some(turns(count, || scope(&mut arena, x())))
        }
        "fixed buffer" => Some(
            Arena::fixed(Upstream::default(), size_of_val(x()) + 64)
                .and_then(|mut arena| turns(count, || scope(&mut arena, x()))),
        ),
        "kept array" => {
            let mut y = vec![0; items];
            Some(turns(count, || Ok(kept(black_box(&mut y), x()))))
        }
        _ => None,
    });
    done.ok_or_else(|| PyValueError::new_err(format!("no way is called {way:?}")))?
        .map_err(|error| PyMemoryError::new_err(error.to_string()))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(scratch_turns, module)?)
}
