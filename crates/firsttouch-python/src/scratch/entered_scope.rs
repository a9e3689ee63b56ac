//! Scopes entered and left, as NumPy sees it: whose handler is the current one.

use crate::custom::raise_scope_error;
use crate::handlers::capsules::{self, nearest_open};
use crate::handlers::front::process_allocator;
use crate::numpy::c_api::NumPy;
use crate::scratch::buffer::PyBuffer;
use crate::scratch::scope::{PyScope, ScopeParts};
use firsttouch::scratch::{Closed, Scope};
use pyo3::prelude::*;

/// A scope that was entered.
pub struct EnteredScope {
    pub parts: ScopeParts,
    pub buffer: Py<PyBuffer>,
    /// Whether its buffer is one's own, so that only one thread or task may enter it.
    own: bool,
}

fn parts<'py>(buffer: &Bound<'py, PyBuffer>, numpy: &NumPy) -> PyResult<ScopeParts> {
    let py = buffer.py();
    let before = nearest_open(numpy.current(py)?)?;
    let this = buffer.get();
    if let Some(parts) = this.ended_scopes.take(&before) {
        parts.scope.reopen();
        return Ok(parts);
    }
    new(this, before)
}

fn new(this: &PyBuffer, before: Bound<'_, PyAny>) -> PyResult<ScopeParts> {
    let py = before.py();
    let handler = capsules::handler(&before)?;
    let around = handler.and_then(|handler| handler.scope());
    let outer = around.map(|(scope, _)| scope.clone());
    let elsewhere = match (&outer, handler) {
        (Some(outer), _) => outer.before().clone(),
        (None, Some(handler)) => handler.allocator().clone(),
        (None, None) => process_allocator(),
    };
    let scope = Scope::open(this.backing().clone(), outer, elsewhere);
    let made = capsules::of_scope(py, &scope, &before).inspect_err(|_| {
        scope.close(); // nobody else can
    });
    let capsule = made?.unbind();
    Ok(ScopeParts { scope, capsule, before: before.unbind(), object: None })
}

/// Opens a scope on `buffer` and lets it serve this context.
pub fn enter(buffer: &Bound<'_, PyBuffer>, own: bool) -> PyResult<EnteredScope> {
    let py = buffer.py();
    let numpy = NumPy::get(py)?;
    if own {
        buffer.get().take_turn(py)?;
    }
    let entered = parts(buffer, numpy).and_then(|parts| {
        let serving = raise_scope_error().and_then(|()| numpy.set_current(parts.capsule.bind(py)));
        serving.inspect_err(|_| {
            parts.scope.close();
        })?;
        Ok(EnteredScope { parts, buffer: buffer.clone().unbind(), own })
    });
    if own && entered.is_err() {
        buffer.get().end_turn(py);
    }
    entered
}

impl EnteredScope {
    /// The object that a `with` statement hands out.
    pub fn object(&mut self, py: Python<'_>) -> PyResult<Py<PyScope>> {
        let object = match self.parts.object.take() {
            Some(object) => object,
            None => Py::new(py, PyScope::new(&self.parts.scope))?,
        };
        object.get().belong_to(py, self.buffer.bind(py).clone().into_super().unbind());
        self.parts.object = Some(object.clone_ref(py));
        Ok(object)
    }

    /// Lets the nearest open scope around this one serve, or who served before them all. Where somebody else serves by
    /// now, or this is another context, nothing changes.
    pub fn step_back(&self, py: Python<'_>) -> PyResult<()> {
        let numpy = NumPy::get(py)?;
        let target = nearest_open(self.parts.before.bind(py).clone())?;
        let there = numpy.set_current(&target)?;
        if there.is(&self.parts.capsule) {
            return Ok(());
        }
        let around = nearest_open(there.clone())?;
        if !around.is(&self.parts.capsule) {
            numpy.set_current(&around)?;
        }
        self.cut_out(there)
    }

    /// Takes this scope out of the chain of those inside it: where each is opened before the last one is left, the chain
    /// would have no end.
    fn cut_out(&self, from: Bound<'_, PyAny>) -> PyResult<()> {
        let py = from.py();
        let mut at = from;
        while let Some((scope, before)) = capsules::handler(&at)?.and_then(|handler| handler.scope()) {
            let next = before.lock(py).clone_ref(py);
            if next.is(&self.parts.capsule) {
                let around = nearest_open(self.parts.before.bind(py).clone())?.unbind();
                scope.go_past(&self.parts.scope);
                let gone = std::mem::replace(&mut *before.lock(py), around);
                drop((gone, next)); // no borrow lives: the end of an allocator may run code of its own
                return Ok(());
            }
            at = next.into_bound(py);
        }
        Ok(())
    }

    /// Ends the scope.
    pub fn close(self, py: Python<'_>) -> Closed {
        let closed = self.parts.scope.close();
        let buffer = self.buffer.bind(py).get();
        if self.own {
            buffer.end_turn(py);
        }
        buffer.ended_scopes.put(py, self.parts);
        closed
    }
}
