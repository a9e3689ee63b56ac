//! NumPy as this module sees it: the layout of its memory handlers (NEP 49) and arrays, the functions of its C interface that
//! handlers and constructors need, and its domain of tracemalloc.

#![allow(unsafe_code)] // Safety: NumPy's binary interface 2, whose number is checked before anything is read.

use crate::python::symbol;
use crate::python::values::{UnsupportedError, out_of_memory};
use firsttouch::os;
use firsttouch::sync::OnceBox;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::NonNull;

/// The name of every handler's capsule (NEP 49).
pub const CAPSULE: &CStr = c"mem_handler";
/// The name of NumPy's default handler.
pub const NUMPYS_NAME: &str = "default_allocator";

/// NumPy's `PyDataMemAllocator`, whose functions NumPy calls without asking whether they are there.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Functions {
    pub ctx: *mut c_void,
    pub malloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    pub calloc: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    pub realloc: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void,
    pub free: unsafe extern "C" fn(*mut c_void, *mut c_void, usize),
}

/// NumPy's `PyDataMem_Handler`.
#[repr(C)]
pub struct RawHandler {
    pub name: [c_char; 127],
    pub version: u8,
    pub allocator: Functions,
}

/// The head of NumPy's `PyArrayObject_fields`.
#[repr(C)]
pub struct RawArray {
    head: ffi::PyObject,
    pub data: *mut c_void,
    nd: c_int,
    dimensions: *mut c_void,
    strides: *mut c_void,
    pub base: *mut ffi::PyObject,
    descr: *mut c_void,
    pub flags: c_int,
    weakreflist: *mut c_void,
    buffer_info: *mut c_void,
    pub mem_handler: *mut ffi::PyObject,
}

/// The head of NumPy's `PyArray_Descr`.
#[repr(C)]
struct RawDescr {
    head: ffi::PyObject,
    kind: *mut ffi::PyTypeObject,
    letters: [c_char; 4],
    number: c_int,
    flags: u64,
    item_size: isize,
}

/// A dtype of numbers, and the bytes of an item.
pub type PlainDtype<'py> = (Bound<'py, PyAny>, usize);

/// NumPy's flags for an array that frees its data, and for one that may be written.
const OWNDATA: c_int = 0x0004;
const WRITEABLE: c_int = 0x0400;

/// NumPy's numbers of types: from the first to the last of these, and one that came later, items are plain bytes.
const BOOL: c_int = 0;
const COMPLEX_LONG_DOUBLE: c_int = 16;
const HALF: c_int = 23;

/// The handler inside a capsule.
pub fn handler_in(capsule: &Bound<'_, PyAny>) -> PyResult<*mut RawHandler> {
    // SAFETY: asks the capsule for its pointer by name; null comes with an error.
    let pointer = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), CAPSULE.as_ptr()) };
    if pointer.is_null() { Err(PyErr::fetch(capsule.py())) } else { Ok(pointer.cast()) }
}

impl RawHandler {
    pub fn name(&self) -> String {
        let bytes: Vec<u8> = self.name.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// NumPy's flags for an array in C order, aligned and writeable.
const CARRAY: c_int = 0x0501;

/// `PyArray_DescrConverter`, which gives a new reference.
type ConvertDtype = unsafe extern "C" fn(*mut ffi::PyObject, *mut *mut ffi::PyObject) -> c_int;
/// `PyArray_NewFromDescr`; it takes over a reference to the dtype.
type NewFromDescr = unsafe extern "C" fn(
    *mut ffi::PyTypeObject,
    *mut ffi::PyObject,
    c_int,
    *const isize,
    *const isize,
    *mut c_void,
    c_int,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// The slots in use.
pub struct NumPy {
    set_handler: unsafe extern "C" fn(*mut ffi::PyObject) -> *mut ffi::PyObject,
    get_handler: unsafe extern "C" fn() -> *mut ffi::PyObject,
    default: *mut ffi::PyObject,
    array_type: *mut ffi::PyTypeObject,
    new_from_descr: NewFromDescr,
    convert_dtype: ConvertDtype,
    /// `PyArray_NewCopy`, which gives a new reference to a copy of an array, for the order 2 as its items lie.
    pub new_copy: unsafe extern "C-unwind" fn(*mut ffi::PyObject, c_int) -> *mut ffi::PyObject,
    /// Where NumPy's library lies in memory.
    library: *const c_void,
    /// NumPy's own default handler, as first seen.
    own: OnceBox<(*const RawHandler, Functions)>,
}

// SAFETY: functions and objects that live as long as the process, and belong to no thread.
unsafe impl Send for NumPy {}
// SAFETY: the functions and objects do not change, and are used by threads that are attached.
unsafe impl Sync for NumPy {}

/// Bytes of the token that setting a context variable makes, with its header: 64 in CPython 3.11 to 3.15.
const TOKEN: usize = 64;

/// Raises `MemoryError` where Python has no memory for a token. `PyContextVar_Set` does not check: without one it sets
/// the variable and fails all the same, or dereferences null. Two, as a thread's first context may take one of them.
fn ensure_memory_for_token(py: Python<'_>) -> PyResult<()> {
    // SAFETY: the GIL is held, and `PyObject_Free` takes null.
    let found = unsafe {
        let (first, second) = (ffi::PyObject_Malloc(TOKEN), ffi::PyObject_Malloc(TOKEN));
        let found = !first.is_null() && !second.is_null();
        ffi::PyObject_Free(second);
        ffi::PyObject_Free(first);
        found
    };
    if found { Ok(()) } else { Err(out_of_memory(py)) }
}

/// What stands in a slot of NumPy's table.
///
/// # Safety
/// The table has this slot, which is a pointer of this type.
unsafe fn slot<T: Copy>(table: *const *const c_void, index: usize) -> T {
    // SAFETY: the table has this slot, with a pointer of this type, as demanded.
    unsafe { table.add(index).cast::<T>().read() }
}

/// Feature version of NumPy 2.0.
const FEATURES_2_0: c_uint = 0x12;

impl NumPy {
    /// NumPy's interface, loaded once.
    pub fn get(py: Python<'_>) -> PyResult<&'static Self> {
        static LOADED: OnceBox<NumPy> = OnceBox::new();
        LOADED.get_or_try_init(|| Self::load(py).map(Box::new))
    }

    fn load(py: Python<'_>) -> PyResult<Self> {
        let module = py.import("numpy._core.multiarray").map_err(|error| {
            UnsupportedError::new_err(format!("firsttouch needs NumPy 2.0 or newer, and could not load it: {error}"))
        })?;
        let capsule = module.getattr("_ARRAY_API")?;
        // SAFETY: `_ARRAY_API` is a capsule without a name around NumPy's table; slots 0, 2, 85, 94, 174, 211
        // and 304 to 306 have these types in all of NumPy's binary interface 2, whose number slot 0 gives and is checked before the rest.
        unsafe {
            let table = ffi::PyCapsule_GetPointer(capsule.as_ptr(), std::ptr::null()).cast::<*const c_void>();
            if table.is_null() {
                return Err(PyErr::fetch(py));
            }
            let abi: unsafe extern "C" fn() -> c_uint = slot(table, 0);
            let features: unsafe extern "C" fn() -> c_uint = slot(table, 211);
            if abi() >> 24 != 2 || features() < FEATURES_2_0 {
                return Err(UnsupportedError::new_err(format!(
                    "firsttouch knows NumPy's binary interface 2, and this NumPy has {:#x} with features {:#x}",
                    abi(),
                    features()
                )));
            }
            Ok(Self {
                library: os::library_of(slot(table, 0)),
                array_type: slot(table, 2),
                new_copy: slot(table, 85),
                new_from_descr: slot(table, 94),
                convert_dtype: slot(table, 174),
                set_handler: slot(table, 304),
                get_handler: slot(table, 305),
                default: *slot::<*const *mut ffi::PyObject>(table, 306),
                own: OnceBox::new(),
            })
        }
    }

    /// NumPy's own default handler, whatever stands in its place now.
    pub fn own_handler(&self, py: Python<'_>) -> PyResult<&(*const RawHandler, Functions)> {
        let found = self.own.get_or_try_init(|| self.default_handler(py, std::ptr::null()).map(Box::new));
        // Another thread may have found it, and put the front there, meanwhile.
        found.or_else(|error| self.own.get().ok_or(error))
    }

    /// What stands behind NumPy's default capsule: NumPy's own handler, or `front`.
    ///
    /// Fails where it is something else: other functions than those of NumPy's own library, or another version.
    pub fn default_handler(
        &self,
        py: Python<'_>,
        front: *const RawHandler,
    ) -> PyResult<(*const RawHandler, Functions)> {
        let raw = handler_in(&self.default_capsule(py))?.cast_const();
        // SAFETY: a capsule of this name holds a handler, whose first fields have not changed since NumPy 1.22; `version`
        // is checked before the functions are believed.
        let (handler, functions) = unsafe { (&*raw, (*raw).allocator) };
        let (name, Functions { malloc, calloc, realloc, free, .. }) = (handler.name(), functions);
        let is_own = |function| os::library_of(function) == self.library;
        let are_own = [malloc as *const c_void, calloc as _, realloc as _, free as _].into_iter().all(is_own);
        if std::ptr::eq(raw, front) || (handler.version == 1 && name == NUMPYS_NAME && are_own) {
            return Ok((raw, functions));
        }
        Err(UnsupportedError::new_err(format!(
            "NumPy's default memory handler is {name:?}, version {}, where firsttouch expects NumPy's own {NUMPYS_NAME:?}, \
             version 1: something else stands there, and is left alone",
            handler.version
        )))
    }

    /// Puts the front behind NumPy's default capsule, through which arrays of every thread reach it: one pointer store. NumPy
    /// offers no other way.
    ///
    /// # Safety
    /// The front lives for ever, passes on what it does not serve to what was behind, and frees each block through the handler
    /// that made it (law 4).
    pub unsafe fn put_front(&self, py: Python<'_>, front: *const RawHandler) -> PyResult<()> {
        // SAFETY: the capsule is NumPy's, and the front does what is asked above.
        match unsafe { ffi::PyCapsule_SetPointer(self.default_capsule(py).as_ptr(), front.cast_mut().cast()) } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(py)),
        }
    }

    /// The capsule of the default handler.
    pub fn default_capsule<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        // SAFETY: NumPy keeps the default capsule for ever.
        unsafe { Bound::from_borrowed_ptr(py, self.default) }
    }

    /// The capsule of the current context's handler.
    pub fn current<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: the function has no preconditions but the GIL and returns a new reference or null with an error.
        unsafe { Bound::from_owned_ptr_or_err(py, (self.get_handler)()) }
    }

    /// Makes `capsule` the current context's handler; the one before.
    pub fn set_current<'py>(&self, capsule: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        ensure_memory_for_token(capsule.py())?;
        // SAFETY: NumPy checks the capsule's name; the handlers outlive their capsules (`capsules.rs`).
        unsafe { Bound::from_owned_ptr_or_err(capsule.py(), (self.set_handler)(capsule.as_ptr())) }
    }

    /// The dtype that is meant, NumPy's default if none is given; `None` where it is not one of numbers.
    pub fn plain_dtype<'py>(&self, py: Python<'py>, given: Option<&Bound<'py, PyAny>>) -> Option<PlainDtype<'py>> {
        let given = given.map_or_else(|| py.None().into_bound(py), Clone::clone);
        let mut found = std::ptr::null_mut();
        // SAFETY: the function gives a dtype, or sets an error, which NumPy's own function will set again.
        unsafe {
            if (self.convert_dtype)(given.as_ptr(), &mut found) == 0 {
                ffi::PyErr_Clear();
                return None;
            }
            let object = Bound::from_owned_ptr(py, found);
            let RawDescr { number, item_size, .. } = *found.cast::<RawDescr>();
            let is_plain = matches!(number, BOOL..=COMPLEX_LONG_DOUBLE | HALF);
            is_plain.then_some((object, item_size as usize))
        }
    }

    /// An array in C order that owns `data` and will give it back through the handler in `capsule`.
    ///
    /// # Safety
    /// `data` is a live block of that handler, large enough for the shape; after an error it is still the caller's.
    pub unsafe fn owning<'py>(
        &self,
        shape: &[isize],
        dtype: &Bound<'py, PyAny>,
        data: *mut c_void,
        capsule: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (dims, none) = (shape.as_ptr(), std::ptr::null_mut());
        // SAFETY: the shape is as long as said, and the function takes over the reference to the dtype. NumPy does not free
        // what it did not allocate, and the array is not shared yet when it becomes the owner and gets its handler, a reference
        // to which it keeps.
        unsafe {
            let (nd, dtype_taken) = (shape.len() as c_int, dtype.clone().into_ptr());
            let made =
                (self.new_from_descr)(self.array_type, dtype_taken, nd, dims, std::ptr::null(), data, CARRAY, none);
            let array = Bound::from_owned_ptr_or_err(dtype.py(), made)?;
            let fields = &mut *made.cast::<RawArray>();
            fields.flags |= OWNDATA;
            fields.mem_handler = capsule.clone().into_ptr();
            Ok(array)
        }
    }

    /// Whether it is an array of NumPy's own class that may be written.
    pub fn is_plain(&self, object: &Bound<'_, PyAny>) -> bool {
        let is_own = object.get_type_ptr() == self.array_type;
        is_own && self.array(object).is_some_and(|fields| fields.flags & WRITEABLE != 0)
    }

    /// The fields of an array, or nothing for other objects.
    pub fn array<'a>(&self, object: &'a Bound<'_, PyAny>) -> Option<&'a RawArray> {
        // SAFETY: an instance of ndarray begins with these fields, and lives as long as the reference.
        unsafe {
            let is_array = ffi::PyObject_TypeCheck(object.as_ptr(), self.array_type) != 0;
            is_array.then(|| &*object.as_ptr().cast::<RawArray>())
        }
    }

    /// The array that owns the memory of an array: itself, or one that it is a view of.
    pub fn owner<'py>(&self, array: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
        let mut owner = array.clone();
        while self.array(&owner)?.flags & OWNDATA == 0 {
            // SAFETY: the array keeps a reference to its base.
            owner = unsafe { Bound::from_borrowed_ptr_or_opt(array.py(), self.array(&owner)?.base) }?;
        }
        Some(owner)
    }

    /// Where the memory of an array begins that owns it.
    pub fn block(&self, owner: &Bound<'_, PyAny>) -> Option<NonNull<u8>> {
        NonNull::new(self.array(owner)?.data.cast())
    }
}

/// NumPy's domain of tracemalloc (`NPY_TRACE_DOMAIN`).
const TRACE_DOMAIN: c_uint = 389_047;

/// `PyTraceMalloc_Track`, which the stable interface leaves out but every CPython has.
type Track = unsafe extern "C" fn(c_uint, usize, usize) -> c_int;

/// Tells tracemalloc, where it listens, of a block of our constructors that an array owns. NumPy reports what it allocates
/// itself, and the end of each.
pub fn track(data: *mut c_void, bytes: usize) {
    static FOUND: OnceBox<Option<Track>> = OnceBox::new();
    // SAFETY: the symbol, where there is one, has had this type since CPython 3.7; it takes any address, and the GIL is held.
    unsafe {
        if let Some(track) = FOUND.get_or_init(|| Box::new(symbol(c"PyTraceMalloc_Track"))) {
            track(TRACE_DOMAIN, data as usize, bytes);
        }
    }
}
