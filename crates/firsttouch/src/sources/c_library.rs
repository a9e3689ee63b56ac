//! The C library's `malloc` and `calloc`, with our alignment, for which each request is enlarged. Blocks of `calloc` are zeroed,
//! whether or not that was requested, and lazily if they are large; at multiples of an alignment, too.

use super::library::{Library, LibraryAllocator};
use crate::allocator::{Description, Request};
use crate::factory::{Arguments, Error};
use crate::layout::{LayoutError, checked_align};
use crate::os;
use crate::spec::{MakeResult, OptionKind, REQUIRED, Spec, opt};
use crate::sync::OnceBox;
use std::sync::Arc;

/// The declaration.
pub const SPECS: &[Spec] = &[
    Spec {
        name: "aligned",
        summary: "an allocator of lazily zeroed memory at multiples of `alignment`.",
        options: &[opt(
            "alignment",
            OptionKind::Alignment,
            REQUIRED,
            "Alignment in bytes, a power of two up to 1 GiB. Text such as ``\"4 KiB\"`` is accepted.",
        )],
        positional: 1,
        notes: "",
        example: "\
>>> ft.aligned(4096).empty(100).ctypes.data % 4096  # as O_DIRECT needs it
0",
    },
    Spec {
        name: "calloc",
        summary: "an allocator on the C library's ``calloc``: every array reads zero, ``empty`` included.",
        options: &[],
        positional: 0,
        notes: "",
        example: "\
>>> ft.calloc().empty(4)
array([0., 0., 0., 0.])",
    },
    Spec {
        name: "malloc",
        summary: "an allocator on the C library's ``malloc``, aligned to 64 bytes.",
        options: &[],
        positional: 0,
        notes: "",
        example: "\
>>> ft.malloc().empty(1000).ctypes.data % 64
0",
    },
];

/// The process's instances of `malloc` and `calloc`, and one of its own for an alignment.
pub fn make(arguments: &Arguments) -> MakeResult {
    static CALLOC: OnceBox<Arc<Calloc>> = OnceBox::new();
    match arguments.number("alignment") {
        Some(align) => Ok(Calloc::aligned(align).map_err(|error| Error::Value(error.to_string()))?),
        None if arguments.name() == "calloc" => Ok(CALLOC.get_or_init(|| Box::new(Calloc::new())).clone()),
        None => Ok(Malloc::get()),
    }
}

/// `malloc`. Zeroed requests are cleared with `memset`; [`Calloc`] gets zeros from the system.
pub type Malloc = LibraryAllocator<CLibrary<false>>;
/// `calloc` and `aligned`.
pub type Calloc = LibraryAllocator<CLibrary<true>>;

/// malloc(3) or calloc(3), which align to 16 bytes; and the alignment of all blocks, if one was requested.
pub struct CLibrary<const ZEROED: bool>(Option<usize>);

impl<const ZEROED: bool> LibraryAllocator<CLibrary<ZEROED>> {
    /// Creates an instance, which knows its own blocks.
    pub fn new() -> Arc<Self> {
        Self::on(CLibrary(None))
    }
}

impl Malloc {
    /// Returns the process's instance.
    pub fn get() -> Arc<Self> {
        static ONE: OnceBox<Arc<Malloc>> = OnceBox::new();
        ONE.get_or_init(|| Box::new(Self::new())).clone()
    }
}

impl Calloc {
    /// Creates one whose blocks lie at multiples of `align` bytes.
    ///
    /// # Errors
    /// If `align` is not a power of two up to 1 GiB.
    pub fn aligned(align: usize) -> Result<Arc<Self>, LayoutError> {
        Ok(Self::on(CLibrary(Some(checked_align(align)?))))
    }
}

// SAFETY: the C library's functions keep malloc's contract in any thread.
unsafe impl<const ZEROED: bool> Library for CLibrary<ZEROED> {
    const ALIGNS: bool = false;

    fn describe(&self) -> Description {
        match self.0 {
            Some(align) => Description::of("aligned").with(align),
            None => Description::of(if ZEROED { "calloc" } else { "malloc" }),
        }
    }

    fn alignment(&self) -> usize {
        self.0.unwrap_or(1)
    }

    fn allocate(&self, request: Request) -> (*mut u8, bool) {
        // SAFETY: malloc(3) and calloc(3) take any size.
        let raw = unsafe { if ZEROED { os::c_calloc(1, request.size()) } else { os::c_malloc(request.size()) } };
        (raw.cast(), ZEROED)
    }

    unsafe fn free(&self, raw: *mut u8, _given: usize) {
        // SAFETY: a block that `allocate` or `reallocate` returned, and that nobody uses any more.
        unsafe { os::c_free(raw.cast()) }
    }

    #[cfg(unix)]
    unsafe fn reallocate(&self, raw: *mut u8, request: Request) -> *mut u8 {
        // SAFETY: a live block of the C library's, whose old address is not used after success.
        unsafe { os::c_realloc(raw.cast(), request.size()).cast() }
    }

    unsafe fn usable_size(&self, raw: *mut u8, _given: usize) -> usize {
        // SAFETY: a live block of the C library's.
        unsafe { os::c_usable(raw.cast()) }
    }
}
