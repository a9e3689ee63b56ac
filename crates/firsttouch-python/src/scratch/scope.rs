//! Scopes: NumPy uses a buffer here, from entering until leaving; and the default buffers of threads and tasks.
//!
//! A thread lists the scopes that it has open, each with a number; a handler knows the number of those that serve its requests.
//! A function's call enters none but the list, so that it costs little: nothing else runs in its thread before it is over. In a
//! `with` block, others may: child tasks, callbacks, the caller of a generator. So the context of a `with` block has a handler of
//! its own, and a number. Contexts leak, and keep the handler: it passes on what no open scope of the thread serves. Ending a
//! scope has nothing to undo, as its buffer counts its blocks.

#![allow(unsafe_code)] // Safety: references to objects that live, and calls of CPython's that return one or an error.

use crate::allocators::allocator::PyAllocator;
use crate::handlers::capsules::{self, nearest_open};
use crate::handlers::front::ensure_front;
use crate::handlers::handler::{Handler, Kind, NUMPYS_SMALL};
use crate::numpy::NumPy;
use crate::python::gil::{self, Name};
use crate::python::values::{ensure_memory, out_of_memory};
use crate::scratch::buffer::{self, PyBuffer};
use firsttouch::allocator::Allocator;
use firsttouch::fork::forks;
use firsttouch::owners;
use firsttouch::scratch::Buffer;
use firsttouch::sync::lock::Lock;
use firsttouch::sync::{OnceBox, thread};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pyclass::{PyTraverseError, PyVisit};
use pyo3::types::{PyDict, PyList, PyTuple};
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// The number of scopes of functions that are called outside of all `with` blocks: they serve the front's requests.
pub const OF_FRONT: u64 = 0;
/// No scope's number.
pub const NONE: u64 = u64::MAX;

/// A scope, for as long as its thread lists it, its `with` block runs, or objects refer to it.
pub struct Scope {
    /// It serves the handlers with this number. The scope of a `with` block has one of its own.
    number: u64,
    /// For a `with` block: the number of the scopes around it or, once these have ended, of those around them.
    around: AtomicU64,
    /// Requests of so many bytes and more get the same memory from whoever serves here without the scope.
    limit: usize,
    /// The thread that opened it, while it is open; no thread has the number zero.
    thread: AtomicU64,
    /// The process that opened it, by its number of forks.
    process: u32,
    buffer: Arc<Buffer>,
}

const CLOSED: u64 = 0;

impl Scope {
    /// Whether it is open, whoever asks.
    pub fn is_open(&self) -> bool {
        self.thread.load(Acquire) != CLOSED
    }

    /// Whether it serves the calling thread.
    pub fn serves(&self) -> bool {
        self.thread.load(Relaxed) == thread() && self.process == forks()
    }
}

/// Scopes with their numbers: as many tasks may have one in a thread, they are looked for by what stands in the list.
type Listed = Vec<(u64, Arc<Scope>)>;

thread_local! {
    /// The scopes that this thread has open, the innermost last. Another thread may have closed one of them.
    static OPEN: RefCell<Listed> = const { RefCell::new(Vec::new()) };
    /// Whether there is a list: glibc ends the process where it has no memory to note that a thread has one to drop.
    static IS_MADE: Cell<bool> = const { Cell::new(false) };
    /// The largest limit of them; zero while there are none.
    static LIMIT: Cell<usize> = const { Cell::new(0) };
    /// The scope that served last: what is freed is likely to be its.
    static LAST: Cell<*const Scope> = const { Cell::new(std::ptr::null()) };
}

/// Does something with the list of this thread; `None` if it has no scopes, or is ending.
#[inline]
fn with_open<T>(run: impl FnOnce(&mut Listed) -> T) -> Option<T> {
    if LIMIT.get() == 0 {
        return None; // there may be no list
    }
    OPEN.try_with(|open| run(&mut open.borrow_mut())).ok()
}

/// Makes the list of this thread, if there is memory.
fn ensure_list(py: Python<'_>) -> PyResult<()> {
    if !IS_MADE.get() {
        // SAFETY: a block that nobody uses; `free` takes null.
        let has_room = unsafe {
            let room = std::hint::black_box(libc::malloc(64));
            libc::free(room);
            !room.is_null()
        };
        if !has_room {
            return Err(out_of_memory(py));
        }
        IS_MADE.set(OPEN.try_with(|_| ()).is_ok());
    }
    Ok(())
}

/// Removes the scopes that ended from the list of this thread, as another thread may have closed some, and adds one.
fn update_list(opened: Option<Arc<Scope>>) {
    LIMIT.set(opened.as_ref().map_or(0, |scope| scope.limit).max(LIMIT.get()));
    let is_last = with_open(|list| {
        let mut is_last = false;
        list.retain(|(_, scope)| {
            is_last |= !scope.is_open() && Arc::strong_count(scope) == 1;
            scope.is_open()
        });
        list.extend(opened.map(|scope| (scope.number, scope)));
        LIMIT.set(list.iter().map(|(_, scope)| scope.limit).max().unwrap_or(0));
        is_last
    });
    if is_last == Some(true) {
        owners::sweep(); // now only the registry may hold its buffer
    }
}

/// Does something with the innermost scope that serves the handlers with this number in this thread.
#[inline]
fn with_scope<T>(number: u64, run: impl FnOnce(&Arc<Scope>) -> T) -> Option<T> {
    with_open(|list| {
        let found = list.iter().rev().find(|(of, scope)| *of == number && scope.serves());
        found.map(|(_, scope)| run(scope))
    })
    .flatten()
}

/// The buffer that serves a request of `size` bytes of a handler with this number of scopes.
#[inline]
pub fn serving(number: u64, size: usize) -> Option<Arc<Buffer>> {
    if !(NUMPYS_SMALL..LIMIT.get()).contains(&size) {
        return None;
    }
    with_scope(number, |scope| {
        LAST.set(Arc::as_ptr(scope));
        scope.buffer.clone()
    })
}

/// Whether a scope of this thread with this number is open.
pub fn is_open(number: u64) -> bool {
    with_scope(number, |_| ()).is_some()
}

/// Frees the block at `address` where it lies in the buffer of the scope that served last, or else of the innermost: the short way
/// for what `owners::find` would find as well. It is this buffer's block only if no other keeper may have lent memory inside of it.
///
/// # Safety
/// A live block begins there that a keeper may list, and nobody uses it any more.
pub unsafe fn try_deallocate(address: NonNull<u8>) -> bool {
    let free = |list: &mut Listed| {
        let likely = list.iter().rfind(|(_, scope)| Arc::as_ptr(scope) == LAST.get()).or(list.last());
        let buffer = likely.map(|(_, scope)| &*scope.buffer).filter(|buffer| owners::is_highest(*buffer));
        // SAFETY: nobody uses the block any more, as demanded; the buffer frees it only if it lies in it.
        buffer.is_some_and(|buffer| unsafe { buffer.try_deallocate(address) })
    };
    with_open(free).unwrap_or(false)
}

/// The object that a `with` statement hands out; arrays made by it stay valid for as long as they live.
///
/// See Also
/// --------
/// firsttouch.scratch : Entering it returns a scope.
#[pyclass(name = "Scope", module = "firsttouch", extends = PyAllocator, frozen, weakref)]
pub struct PyScope {
    scope: Arc<Scope>,
    buffer: Py<PyBuffer>,
}

#[pymethods]
impl PyScope {
    /// Buffer that the scope takes memory from.
    #[getter]
    fn buffer(&self, py: Python<'_>) -> Py<PyBuffer> {
        self.buffer.clone_ref(py)
    }

    /// Whether the `with` block is still running.
    #[getter]
    fn is_open(&self) -> bool {
        self.scope.is_open()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let state = if self.scope.is_open() { "open" } else { "ended" };
        format!("<{state} scope on {}>", self.buffer.bind(py).get().buffer().expression())
    }
}

/// A scope that was entered, which ends with this at the latest.
struct Entered {
    scope: Arc<Scope>,
    /// For a `with` block: the capsule of its handler, and that of who served the context before.
    block: Option<(Py<PyAny>, Py<PyAny>)>,
}

impl Entered {
    /// Opens a scope for a block, or else for a function's call. Where a handler serves that knows no scopes, the call of a
    /// function gets a handler, too.
    fn new(py: Python<'_>, buffer: &Arc<Buffer>, is_block: bool) -> PyResult<Self> {
        static LAST: AtomicU64 = AtomicU64::new(OF_FRONT);
        ensure_memory(py)?;
        ensure_list(py)?;
        ensure_front(py);
        let numpy = NumPy::get(py)?;
        let before = numpy.current(py)?;
        let handler = capsules::handler_of(&before)?;
        // The buffer's large blocks are its upstream's: they need not come by the buffer where that serves anyway.
        let is_same = |server: &&Handler| buffer.upstream().is_some_and(|up| Arc::ptr_eq(up, server.allocator()));
        let server = match handler.and_then(|handler| handler.behind.as_ref()) {
            Some(behind) => capsules::handler_of(behind.bind(py))?,
            None => handler,
        };
        let server = server.filter(|server| server.kind != Kind::NumPy).filter(is_same);
        let limit = server.map_or(usize::MAX, |server| server.small_limit().max(buffer.large()));
        let around = handler.map_or(NONE, Handler::scope);
        let (mut number, mut block) = (around, None);
        if is_block || around == NONE {
            number = LAST.fetch_add(1, Relaxed) + 1;
            let capsule = capsules::of_scope(number, capsules::behind_scopes(before.clone())?)?;
            numpy.set_current(&capsule)?;
            block = Some((capsule.unbind(), before.unbind()));
        } else if let Some(handler) = handler {
            handler.let_scopes();
        }
        let (thread, process, buffer) = (AtomicU64::new(thread()), forks(), buffer.clone());
        let scope = Arc::new(Scope { number, around: AtomicU64::new(around), limit, thread, process, buffer });
        update_list(Some(scope.clone()));
        Ok(Self { scope, block })
    }

    /// Ends the scope. It stays listed until this is dropped: what is freed meanwhile is found there.
    fn close(&mut self, py: Python<'_>) -> PyResult<()> {
        self.scope.thread.store(CLOSED, Release);
        let Some((capsule, before)) = self.block.take() else { return Ok(()) };
        let around = self.scope.around.load(Relaxed);
        with_open(|list| {
            let is_inside = |inside: &Scope| inside.around.load(Relaxed) == self.scope.number;
            let inside = list.iter().filter(|(_, scope)| is_inside(scope));
            inside.for_each(|(_, scope)| scope.around.store(around, Relaxed));
        });
        let (capsule, before) = (capsule.into_bound(py), before.into_bound(py));
        if let Some(handler) = capsules::handler_of(&capsule)? {
            handler.set_scope(around); // contexts may keep it
        }
        // Where somebody else serves by now, or this is another context, nothing changes.
        let numpy = NumPy::get(py)?;
        let current = numpy.current(py)?;
        let next = nearest_open(if current.is(&capsule) { before } else { current.clone() })?;
        if next.is(&current) { Ok(()) } else { numpy.set_current(&next).map(drop) }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if self.scope.is_open() {
            Python::try_attach(|py| self.close(py).unwrap_or_else(|error| error.write_unraisable(py, None)));
        }
        update_list(None);
    }
}

/// The given buffer, or else the default one here.
fn chosen<'py>(py: Python<'py>, given: &Option<Py<PyBuffer>>) -> PyResult<Bound<'py, PyBuffer>> {
    given.as_ref().map_or_else(|| default_buffer(py), |buffer| Ok(buffer.bind(py).clone()))
}

/// What opens scopes for `with` statements, in any thread and task. It is no Python, as Ctrl-C may come at the beginning of any
/// function that is: the scope would stay.
#[pyclass(module = "firsttouch._firsttouch", subclass, frozen, weakref)]
pub struct Scopes {
    buffer: Option<Py<PyBuffer>>,
    /// Each with the frame that entered it.
    entered: Lock<Vec<(Frame, Entered, Py<PyBuffer>)>>,
}

/// The addresses of a frame and of its code. (A frame that has ended leaves its address to others.)
type Frame = (usize, usize);

/// The frame of the Python function that calls, if one does.
fn frame(_py: Python<'_>) -> Frame {
    // SAFETY: the thread is attached; the answers are a frame, or null, and a new reference to its code.
    unsafe {
        let frame = ffi::PyEval_GetFrame();
        let code = if frame.is_null() { std::ptr::null_mut() } else { ffi::PyFrame_GetCode(frame) };
        ffi::Py_DecRef(code.cast()); // which the frame keeps
        (frame.addr(), code.addr())
    }
}

#[pymethods]
impl Scopes {
    #[new]
    #[pyo3(signature = (buffer))]
    fn new(buffer: Option<Py<PyBuffer>>) -> Self {
        Self { buffer, entered: Lock::new(Vec::new()) }
    }

    #[getter]
    fn buffer(&self, py: Python<'_>) -> Option<Py<PyBuffer>> {
        self.buffer.as_ref().map(|buffer| buffer.clone_ref(py))
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<PyScope>> {
        let (frame, buffer) = (frame(py), chosen(py, &self.buffer)?);
        let entered = Entered::new(py, buffer.get().buffer(), true)?;
        let scope = entered.scope.clone();
        let allocator = PyAllocator::of_scope(buffer.get().buffer().clone(), scope.clone());
        let capsule = capsules::of_allocator(py, buffer.as_super().get())?;
        let _ = allocator.capsule().set(Box::new(capsule.clone().unbind()));
        let scope = PyScope { scope, buffer: buffer.clone().unbind() };
        let object = Py::new(py, PyClassInitializer::from(allocator).add_subclass(scope))?;
        self.entered.lock().push((frame, entered, buffer.unbind()));
        Ok(object)
    }

    /// Ends the scope that this frame entered, as threads, tasks and generators may share this. An `ExitStack` has another frame at
    /// its end. There, and among several of a frame, it is the scope that serves here, or else the last of this thread, or of all.
    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) -> PyResult<()> {
        let (frame, current) = (frame(py), NumPy::get(py)?.current(py)?);
        let last = {
            let mut entered = self.entered.lock();
            let fits = |(of_frame, of, _): &(Frame, Entered, _)| {
                let serves_here = of.block.as_ref().is_some_and(|(capsule, _)| capsule.is(&current));
                (*of_frame == frame, serves_here, of.scope.serves())
            };
            let last = (0..entered.len()).max_by_key(|&at| fits(&entered[at]));
            last.map(|at| entered.remove(at))
        };
        let Some((_, mut last, buffer)) = last else { return Ok(()) };
        let closed = last.close(py);
        drop(last); // before its buffer
        buffer.get().buffer().settle();
        closed
    }
}

/// A function each of whose calls has a scope.
#[pyclass(module = "firsttouch._firsttouch", subclass, frozen, weakref)]
pub struct ScratchFunction {
    function: Py<PyAny>,
    buffer: Option<Py<PyBuffer>>,
    /// Copies a result.
    copied: Py<PyAny>,
}

#[pymethods]
impl ScratchFunction {
    #[new]
    #[pyo3(signature = (function, buffer, copied))]
    fn new(function: Py<PyAny>, buffer: Option<Py<PyBuffer>>, copied: Py<PyAny>) -> Self {
        Self { function, buffer, copied }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let owner = chosen(py, &self.buffer)?;
        let buffer = owner.get().buffer();
        let since = buffer.serial();
        let mut entered = Entered::new(py, buffer, false)?;
        let returned = gil::call(self.function.bind(py), args, kwargs);
        let closed = entered.close(py); // from here on memory is that of who is around: copies belong there
        let mut returned = returned?;
        closed?;
        if buffer.serial() == since {
            return Ok(returned); // nothing was cut off its chunks, and nothing is to be copied
        }
        let mark = CallMark { since, buffer: owner.clone().unbind() };
        let is_container = returned.is_exact_instance_of::<PyTuple>()
            || returned.is_exact_instance_of::<PyList>()
            || returned.is_exact_instance_of::<PyDict>();
        let (owner, numpy) = (mark.pinned(&returned)?, NumPy::get(py)?);
        if owner.as_ref().is_some_and(|owner| owner.is(&returned) && numpy.is_plain(owner)) {
            // SAFETY: an array; the result is a new reference, or null with an error.
            returned = unsafe { gil::or_wait(py, || (numpy.new_copy)(returned.as_ptr(), 2)) }?;
        } else if is_container || owner.is_some() {
            // PyO3's own way to a tuple would panic where there is no memory for it.
            let (mark, kept) = (Py::new(py, mark)?, returned.as_ptr());
            // SAFETY: packs two objects into a new tuple, or returns null with an error.
            let args = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyTuple_Pack(2, kept, mark.as_ptr())) }?;
            returned = gil::call(self.copied.bind(py), &args.cast_into()?, None)?;
        }
        buffer.settle();
        Ok(returned)
    }

    /// For the collector of cycles.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)?;
        visit.call(&self.buffer)
    }
}

/// Where a call began in its buffer, which tells what was made in it.
#[pyclass(frozen, module = "firsttouch._firsttouch")]
pub struct CallMark {
    buffer: Py<PyBuffer>,
    /// The number of the buffer's next request when the call began.
    since: u64,
}

#[pymethods]
impl CallMark {
    /// The array that owns the memory of `array`, if it was made here, and lies in a chunk of the buffer.
    fn pinned<'py>(&self, array: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let numpy = NumPy::get(array.py())?;
        let owner = numpy.owner(array);
        let data = owner.as_ref().and_then(|owner| numpy.block(owner));
        let block = data.and_then(|data| self.buffer.get().buffer().block(data));
        Ok(owner.filter(|_| block.is_some_and(|(_, serial)| serial >= self.since)))
    }
}

/// The loaded modules.
static MODULES: OnceBox<Py<PyDict>> = OnceBox::new();
/// The homes of tasks, in a weak dictionary.
static TASKS: OnceBox<Py<PyAny>> = OnceBox::new();

/// Makes what the first call would make, during which another thread may fork.
pub fn look_up(py: Python<'_>) -> PyResult<()> {
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    let tasks = py.import("weakref")?.getattr("WeakKeyDictionary")?.call0()?;
    let _ = (MODULES.set(Box::new(modules.unbind())), TASKS.set(Box::new(tasks.unbind())));
    buffer::lends(py.None().bind(py))?;
    home(py).map(drop)
}

static ASYNCIO: Name = Name::new("asyncio");
/// Where the thread's dictionary has the list of [`home`].
static SCRATCH: Name = Name::new("firsttouch.scratch");

/// The task that runs in this thread.
fn task(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let modules = MODULES.get().map(|modules| modules.bind(py).get_item(ASYNCIO.get(py)));
    let Some(asyncio) = modules.transpose()?.flatten() else { return Ok(None) };
    // While asyncio is being imported, no loop runs.
    let Some(running) = asyncio.getattr_opt("_get_running_loop")? else { return Ok(None) };
    let running = running.call0()?;
    if running.is_none() {
        return Ok(None);
    }
    let task = asyncio.getattr("current_task")?.call1((running,))?;
    Ok((!task.is_none()).then_some(task))
}

/// The buffers of who runs now: the default one, once it was used, and those that `using_buffer` put in its place, the
/// innermost first. They go with their thread or task.
#[pyfunction]
pub fn home(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    if let (Some(task), Some(tasks)) = (task(py)?, TASKS.get()) {
        let home = gil::call_method(tasks.bind(py), "setdefault", (task, PyList::empty(py)))?;
        return Ok(home.cast_into()?);
    }
    let (dict, key) = (gil::thread_dict(py)?, SCRATCH.get(py));
    if let Some(home) = dict.get_item(key)? {
        return Ok(home.cast_into()?);
    }
    let home = PyList::empty(py);
    dict.set_item(key, &home)?;
    Ok(home)
}

/// Return the scratch buffer of this thread or, in a running asyncio task, of this task.
///
/// Returns
/// -------
/// firsttouch.buffers.Buffer
///     The same object each time. It is made on first use and goes with its thread or task.
///
/// See Also
/// --------
/// using_buffer : Replace it for a block of code.
/// scratch : Uses it by default.
///
/// Examples
/// --------
/// >>> ft.buffers.default_buffer() is ft.buffers.default_buffer()
/// True
#[pyfunction]
pub fn default_buffer(py: Python<'_>) -> PyResult<Bound<'_, PyBuffer>> {
    let home = home(py)?;
    if home.is_empty() {
        home.append(buffer::default_growing(py)?)?;
    }
    Ok(home.get_item(0)?.cast_into()?)
}
