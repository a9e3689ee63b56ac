//! Placement: the page size, NUMA policy, prefault and lock of one mapping, and the receipt of what was granted.

#![allow(unsafe_code)] // Safety: a mapping is created here and not in use until it is returned.

use crate::description::{Description, Value, separated};
use crate::error::{AllocError, Limit};
use crate::expression::did_you_mean;
use crate::layout::round_up;
use crate::numa::{Binding, Policy, with_memory};
use crate::os::{Errno, Mode};
use crate::pages::touch;
pub use crate::reason::Reason;
use crate::size::{self, Bytes};
use crate::{failure, os};
use std::fmt;

// ---- What can be asked for -------------------------------------------------------------------------------------------

/// The kind of a block's pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Page {
    /// Pages of the smallest size.
    #[default]
    Base,
    /// Transparent huge pages, which the kernel grants page by page.
    Transparent,
    /// Explicit huge pages of this size in bytes, from the kernel's pool.
    Explicit(usize),
}

impl Page {
    /// Parses a page size: `thp`, or a power of two, like `2M` or `1G`; so `2MB` is the same.
    ///
    /// # Errors
    /// A message that says what is accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "thp" {
            return Ok(Self::Transparent);
        }
        match size::parse(text.strip_suffix(['b', 'B']).unwrap_or(text)).or_else(|_| size::parse(text)) {
            Ok(size) if size.is_power_of_two() && size > os::page_size() => Ok(Self::Explicit(size)),
            _ => Err(format!("{text:?} is not a size of huge pages{}", did_you_mean(text, ["thp"]))),
        }
    }

    /// The page size as an argument of `pages`.
    pub fn value(&self) -> Value {
        match *self {
            Self::Base => Value::Flag(false),
            Self::Transparent => Value::from("thp"),
            Self::Explicit(size) if size % (1 << 30) == 0 => Value::from(format!("{}G", size >> 30)),
            Self::Explicit(size) if size % (1 << 20) == 0 => Value::from(format!("{}M", size >> 20)),
            Self::Explicit(size) => Value::from(format!("{}K", size >> 10)),
        }
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

/// The size of a page in bytes.
pub fn page_bytes(page: Page) -> usize {
    match page {
        Page::Base | Page::Transparent => os::page_size(), // the kernel may have granted only small ones
        Page::Explicit(bytes) => bytes,
    }
}

/// The requested placement; see the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Placement {
    /// The page size. Where it is not to be had, transparent huge pages take its place, and then base pages.
    pub page: Page,
    /// The number of threads that prefault pages, 0 for as many as suit; `None` if the first touch faults them in.
    pub populate: Option<usize>,
    /// Whether the memory is locked (mlock).
    pub lock: bool,
    /// The NUMA policy.
    pub policy: Option<Policy>,
    /// Whether it is an error if an option is not granted.
    pub strict: bool,
}

impl Placement {
    /// Pages of this kind, and nothing else.
    pub fn of_pages(huge: bool) -> Self {
        Self { page: if huge { Page::Transparent } else { Page::Base }, ..Self::default() }
    }

    /// The placement as `pages` with its options.
    pub fn describe(&self) -> Description {
        let populate = match self.populate {
            None => Value::Flag(false),
            Some(0) => Value::Flag(true),
            Some(threads) => Value::from(threads),
        };
        Description::of("pages")
            .named("huge", self.page.value())
            .named("populate", populate)
            .named("lock", self.lock)
            .named("numa", self.policy.map(|policy| policy.to_string()))
            .named("strict", self.strict)
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        separated(f, &self.describe().needed())
    }
}

// ---- What was granted ------------------------------------------------------------------------------------------------

/// The options granted to one block.
#[derive(Clone, Copy, Debug, Default)]
pub struct Receipt {
    /// The requested size in bytes.
    pub asked: usize,
    /// The mapped size in bytes.
    pub bytes: usize,
    /// The kind of its pages. Transparent huge pages are a request that the kernel grants where it can.
    pub page: Page,
    /// The requested page size, if another was granted, and why it was not available.
    pub refused: Option<(Page, Reason)>,
    /// The policy granted.
    pub policy: Option<Policy>,
    /// Why none was granted, or only a part.
    pub policy_refused: Option<Reason>,
    /// The number of threads that prefaulted its pages; zero if they were not.
    pub threads: usize,
}

impl Receipt {
    /// Why options were not granted, one sentence for each.
    pub fn why_not(&self) -> Vec<String> {
        let pages = self.refused.map(|(page, reason)| format!("huge={page}: {reason}"));
        pages.into_iter().chain(self.policy_refused.map(|reason| format!("numa: {reason}"))).collect()
    }
}

// ---- A mapping is made -----------------------------------------------------------------------------------------------

/// An address and a size.
type Mapping = (usize, usize);

impl Placement {
    /// Creates a mapping of at least `size` bytes at a multiple of `align`, and returns its address and receipt.
    ///
    /// # Errors
    /// If there is no memory; if the pages are to be prefaulted and there are too few; if locking is refused; with
    /// `strict`, if any other option is not granted.
    pub fn map(&self, size: usize, align: usize) -> Result<(usize, Receipt), AllocError> {
        let mut receipt = Receipt { asked: size, ..Receipt::default() };
        let binding = self.policy.map(|policy| policy.binding());
        receipt.policy_refused = match binding {
            Some(Ok(binding)) => binding.clipped.then_some(Reason::Cpuset),
            Some(Err(reason)) => Some(reason),
            None => None,
        };
        let binding = binding.and_then(Result::ok);
        let mapping = self.map_pages(align, binding.as_ref(), &mut receipt)?;
        self.finish(mapping, binding.as_ref(), &mut receipt).inspect_err(|_| discard(mapping))?;
        Ok((mapping.0, receipt))
    }

    /// Creates a mapping on the pages asked for, or else on transparent huge pages, or on base pages.
    fn map_pages(&self, align: usize, binding: Option<&Binding>, receipt: &mut Receipt) -> Result<Mapping, AllocError> {
        let size = receipt.asked;
        let wishes: &[Page] = match self.page {
            Page::Base => &[],
            Page::Transparent => &[Page::Transparent],
            Page::Explicit(_) => &[self.page, Page::Transparent],
        };
        for &page in wishes {
            let found = match page {
                Page::Explicit(bytes) => map_explicit(size, align, bytes, binding),
                _ => map_transparent(size, align),
            };
            match found {
                Ok(mapping) => {
                    (receipt.page, receipt.bytes) = (page, mapping.1);
                    return Ok(mapping);
                }
                Err(reason) => receipt.refused = receipt.refused.or(Some((page, reason))),
            }
        }
        receipt.bytes = round_up(size, os::page_size()).unwrap_or(size);
        let address = os::map_aligned(receipt.bytes, align.max(os::page_size()), binding.and_then(Binding::one_node));
        let address = address.map_err(|error| AllocError::new(size, os::why_refused(size, error)));
        Ok((address.inspect_err(|&error| failure::remember(error))?, receipt.bytes))
    }

    /// Applies policy, prefault and lock to a mapping.
    fn finish(&self, map: Mapping, binding: Option<&Binding>, receipt: &mut Receipt) -> Result<(), AllocError> {
        if let Some(binding) = binding {
            bind_mapping(map, binding, receipt);
        }
        if self.strict {
            let is_small = matches!(receipt.refused, Some((_, Reason::Small))); // not refused, but of no use
            if let Some(why) = receipt.why_not().get(usize::from(is_small)) {
                return Err(explained(
                    AllocError::new(receipt.asked, Limit::Placement),
                    format!("cannot allocate {} as a strict placement requires: {why}", Bytes(receipt.asked)),
                ));
            }
        }
        if let Some(threads) = self.populate {
            enough(map, binding, receipt.asked, "populate")?;
            populate(map, threads, receipt)?;
        } else if self.lock {
            enough(map, binding, receipt.asked, "lock")?;
        }
        if self.lock { lock(map, receipt.asked) } else { Ok(()) }
    }
}

/// The error, after its reason is kept.
fn explained(error: AllocError, why: String) -> AllocError {
    failure::explain(error, why);
    error
}

fn discard((address, size): Mapping) {
    // SAFETY: it was just mapped and is not in use.
    let _ = unsafe { os::unmap(address, size) };
}

/// Creates a mapping advised as transparent huge pages, aligned to whole huge pages.
fn map_transparent(size: usize, align: usize) -> Result<Mapping, Reason> {
    let page = os::huge_page_size().ok_or(Reason::Unsupported)?;
    if size < page {
        return Err(Reason::Small);
    }
    if os::available_huge_page_size().is_none() {
        return Err(Reason::Off);
    }
    let whole = round_up(size, page).ok_or(Reason::Small)?;
    let address = os::map_aligned(whole, align.max(page), None).map_err(Reason::of)?;
    os::advise_huge(address, whole).inspect_err(|_| discard((address, whole))).map_err(Reason::of)?;
    Ok((address, whole))
}

/// Creates a mapping of explicit huge pages of `page` bytes, if the block has at least one.
fn map_explicit(size: usize, align: usize, page: usize, binding: Option<&Binding>) -> Result<Mapping, Reason> {
    let whole = round_up(size, page).filter(|_| size >= page).ok_or(Reason::Small)?;
    if align > page {
        return Err(Reason::Alignment);
    }
    let pool = |error| match error {
        Errno::NO_MEMORY => Reason::Pool,
        Errno::INVALID => Reason::Unsupported, // the machine has no pages of this size
        error => Reason::of(error),
    };
    let address = os::map_huge(whole, page, binding.and_then(Binding::one_node)).map_err(pool)?;
    // The kernel's pool guarantees pages of the machine, not of a node: a page that a node lacks would be a SIGBUS at
    // its first touch. So bound pages are faulted in here. Where a node can only be given when mapping, they are there.
    let real = binding.is_none_or(|binding| match os::bind(address, whole, binding.mode, &binding.nodes) {
        Err(Errno::UNSUPPORTED) => true,
        bound => bound.is_ok() && os::populate(address, whole, true).is_ok(),
    });
    if !real {
        discard((address, whole));
        return Err(Reason::Node);
    }
    Ok((address, whole))
}

/// Binds the pages of a mapping to their nodes, and writes the receipt.
fn bind_mapping((address, size): Mapping, binding: &Binding, receipt: &mut Receipt) {
    receipt.policy = Some(Policy { mode: binding.mode, nodes: Some(binding.nodes) });
    match os::bind(address, size, binding.mode, &binding.nodes) {
        Ok(()) => {}
        // Where there are no policies of pages, it was given when mapping, and is preferred.
        Err(Errno::UNSUPPORTED) if binding.one_node().is_some() => {
            if binding.mode != Mode::Preferred && with_memory().len() > 1 {
                receipt.policy_refused = Some(Reason::Preferred);
            }
        }
        Err(error) => (receipt.policy, receipt.policy_refused) = (None, Some(Reason::of(error))),
    }
}

/// Fails if less is available than `what` makes resident.
fn enough(map: Mapping, binding: Option<&Binding>, asked: usize, what: &str) -> Result<(), AllocError> {
    let bound = binding.filter(|binding| binding.mode == Mode::Bind);
    let Some((available, why)) = touch::lacking(map, bound.map(|binding| &binding.nodes)) else { return Ok(()) };
    let error = AllocError::new(asked, Limit::Available(available));
    Err(explained(error, format!("cannot allocate {} ({what}): {why}", Bytes(asked))))
}

/// Faults in the pages of a mapping.
fn populate(map: Mapping, threads: usize, receipt: &mut Receipt) -> Result<(), AllocError> {
    // SAFETY: the range was just mapped, and is not unmapped before this returns.
    let done = touch::detached(|| unsafe { touch::prefault(map, page_bytes(receipt.page), true, threads) });
    receipt.threads = done.map_err(|error| {
        let why = format!("cannot populate {} (populate=): {}", Bytes(map.1), Reason::of(error));
        explained(AllocError::new(receipt.asked, Limit::Errno(error.0)), why)
    })?;
    Ok(())
}

/// Locks a mapping.
fn lock((address, size): Mapping, asked: usize) -> Result<(), AllocError> {
    let failed = |_| AllocError::new(asked, os::why_refused(asked, Errno::AGAIN));
    os::lock(address, size).map_err(failed).inspect_err(|&error| failure::remember(error))
}
