//! Handles under way: shared memory whose owner was dropped stays until who is to have it has opened it.
//!
//! Each handle has a ticket: a number that whoever opens it writes into a small memory file of the sender's, at a place
//! of the ticket's own. Memory that is dropped with tickets out is known by its file for a while longer; the caretaker
//! looks whether they came back.

use super::find;
use crate::memory::caretaker::{self, Errand, Ward};
use crate::memory::lock::Lock;
use crate::os::{self, Errno};
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

/// How long a handle is good for after its memory was dropped.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// Places for tickets; one that is used again forgets the ticket before.
const PLACES: u64 = 1 << 16;
const BYTES: usize = PLACES as usize * size_of::<u64>();
/// What the file of proofs is called, behind a name of its own.
const NAME: &str = "firsttouch-post:";

/// What proves that a handle was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The name of the sender's file of proofs, and its number there.
    pub post: String,
    /// See `post`.
    pub file: i32,
    /// The ticket's own number, from 1.
    pub number: u64,
}

impl Ticket {
    /// Says to the process that issued it that its handle was opened. Where that can't be said, it waits in vain.
    pub fn give_back(&self, process: u32) {
        if let Ok(file) = find(process, self.file, &format!("{NAME}{}", self.post), true) {
            let place = (self.number % PLACES) as usize * size_of::<u64>();
            let _ = os::write_file_at(&file, &self.number.to_ne_bytes(), place);
        }
    }
}

/// This process's file of proofs, mapped.
struct Post {
    process: u32,
    name: String,
    file: File,
    address: usize,
    last: u64,
}

impl Post {
    fn new() -> Result<Self, Errno> {
        let name: String = os::random().iter().map(|byte| format!("{byte:02x}")).collect();
        let file = os::memory_file(&format!("{NAME}{name}"), BYTES, None)?;
        let address = os::map_file(&file, BYTES, 0, true)?;
        Ok(Self { process: std::process::id(), name, file, address, last: 0 })
    }

    fn place(&self, number: u64) -> &AtomicU64 {
        let address = self.address + (number % PLACES) as usize * size_of::<u64>();
        // SAFETY: the place lies in the mapping, which stays as long as the post; others write to it as to an atomic.
        unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(address)) }
    }

    fn came_back(&self, number: u64) -> bool {
        self.place(number).load(Relaxed) == number
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        // SAFETY: it was mapped for this post alone.
        let _ = unsafe { os::unmap(self.address, BYTES) };
    }
}

/// Memory that was dropped with tickets out.
struct Kept {
    /// Nothing once it is over: the caretaker closes files and frees nothing.
    file: Option<File>,
    tickets: Vec<u64>,
    until: Instant,
}

struct State {
    post: Option<Post>,
    /// All tickets that did not come back yet, and when they were issued.
    out: Vec<(u64, Instant)>,
    kept: Vec<Kept>,
}

static STATE: Lock<State> = Lock::new(State { post: None, out: Vec::new(), kept: Vec::new() });

impl Kept {
    /// Whether it is to be kept for tickets of `post`.
    fn waits(&self, post: &Post) -> bool {
        self.file.is_some()
            && Instant::now() < self.until
            && post.process == std::process::id()
            && !self.tickets.iter().all(|&number| post.came_back(number))
    }
}

impl State {
    /// In a forked child: what the parent has under way is the parent's to keep.
    fn be_of_this_process(&mut self) {
        if self.post.as_ref().is_some_and(|post| post.process != std::process::id()) {
            *self = Self { post: None, out: Vec::new(), kept: Vec::new() };
        }
    }

    /// Forgets what came back, and what waited long enough.
    fn look(&mut self) {
        self.be_of_this_process();
        let Some(post) = &self.post else { return };
        let now = Instant::now();
        self.out.retain(|&(number, issued)| !post.came_back(number) && now < issued + GOOD_FOR);
        self.kept.retain(|kept| kept.waits(post));
    }
}

/// The tickets of one mapping.
pub(super) struct Tickets(Lock<(u32, Vec<u64>)>);

impl Default for Tickets {
    fn default() -> Self {
        Self(Lock::new((0, Vec::new())))
    }
}

impl Tickets {
    /// A new one.
    pub(super) fn issue(&self) -> Result<Ticket, Errno> {
        set_up();
        let mut state = STATE.lock();
        state.look();
        if state.post.is_none() {
            state.post = Some(Post::new()?);
        }
        let State { post: Some(post), out, .. } = &mut *state else { return Err(Errno::UNSUPPORTED) };
        post.last += 1;
        let number = post.last;
        post.place(number).store(0, Relaxed);
        out.push((number, Instant::now()));
        let mut own = self.0.lock();
        if own.0 != post.process {
            *own = (post.process, Vec::new()); // the others are a parent's
        }
        own.1.retain(|&number| !post.came_back(number));
        own.1.push(number);
        Ok(Ticket { post: post.name.clone(), file: os::file_number(&post.file), number })
    }

    /// Keeps a file as long as a ticket of it is out.
    pub(super) fn keep(&self, file: File) {
        let (process, tickets) = std::mem::take(&mut *self.0.lock());
        if tickets.is_empty() || process != std::process::id() {
            return; // and the file is closed
        }
        let mut state = STATE.lock();
        state.kept.push(Kept { file: Some(file), tickets, until: Instant::now() + GOOD_FOR });
        state.look();
        let waits = !state.kept.is_empty();
        drop(state);
        if waits {
            caretaker::ensure();
        }
    }
}

/// Waits until no handle is under way, at most so long; whether that was reached.
pub fn linger(most: Duration) -> bool {
    let end = Instant::now() + most;
    loop {
        {
            let mut state = STATE.lock();
            state.look();
            if state.out.is_empty() {
                return true;
            }
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

struct Keeper;

impl Ward for Keeper {
    fn tick(&self) -> Option<Arc<dyn Errand>> {
        if let State { post: Some(post), kept, .. } = &mut *STATE.lock() {
            kept.iter_mut().filter(|kept| !kept.waits(post)).for_each(|kept| kept.file = None);
        }
        None
    }

    fn ages(&self) -> bool {
        false
    }

    fn rests(&self) -> bool {
        STATE.lock().kept.iter().all(|kept| kept.file.is_none())
    }

    fn hold(&self) {
        STATE.hold();
    }

    unsafe fn release(&self) {
        // SAFETY: `hold` took it.
        unsafe { STATE.release() };
    }
}

fn set_up() {
    static ONCE: Once = Once::new();
    static KEEPER: Keeper = Keeper;
    // SAFETY: a static lives for ever.
    ONCE.call_once(|| unsafe { caretaker::enter(&raw const KEEPER) });
}
