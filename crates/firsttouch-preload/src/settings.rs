//! The settings, as they come through the environment: `FIRSTTOUCH_PRELOAD="threshold=131072 decay=never ..."`.
//!
//! `firsttouch run` writes them; a word that is not understood is left out, since the library may be younger or older.

use firsttouch::adaptors::Options;
use firsttouch::layout::SMALL_LIMIT;
use firsttouch::size;
use std::ffi::{CStr, OsString, c_char};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

const VARIABLE: &str = "FIRSTTOUCH_PRELOAD=";

/// Which process reports, and where to.
#[derive(Clone, Default)]
pub struct Reporting {
    /// The process that reports; every process where there is none but a file with `%p`.
    pub process: Option<u32>,
    /// Whether nothing is written on standard error.
    pub quiet: bool,
    /// A file for the report as JSON.
    pub json: Option<Pattern>,
}

pub struct Settings {
    pub threshold: usize,
    pub pool: Options,
    pub reporting: Reporting,
}

impl Settings {
    /// Reads them from the environment that the loader hands to constructors: the C library's is not there yet.
    ///
    /// # Safety
    /// `environment` is a list of C strings that ends with null.
    pub unsafe fn read(mut environment: *const *const c_char) -> Self {
        let pool = Options { arrays: false, ..Options::default() };
        let mut found = Self { threshold: 128 << 10, pool, reporting: Reporting::default() };
        // SAFETY: `environment` is a list of C strings that ends with null (`life.rs`, which has it from the loader).
        unsafe {
            while !environment.is_null() && !(*environment).is_null() {
                let entry = CStr::from_ptr(*environment).to_bytes();
                if let Some(text) = entry.strip_prefix(VARIABLE.as_bytes()) {
                    found.understand(text);
                }
                environment = environment.add(1);
            }
        }
        found
    }

    fn understand(&mut self, text: &[u8]) {
        let mut rest = text.trim_ascii_start();
        while !rest.is_empty() {
            // A file's name may hold anything, so it comes last.
            if let Some(name) = rest.strip_prefix(b"json=") {
                self.reporting.json = Some(Pattern(name.to_owned())).filter(|_| !name.is_empty());
                return;
            }
            let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            if let Some((name, value)) = std::str::from_utf8(word).ok().and_then(|word| word.split_once('=')) {
                self.set(name, value);
            }
            rest = behind.trim_ascii_start();
        }
    }

    fn set(&mut self, name: &str, value: &str) {
        match name {
            "threshold" => self.threshold = size::parse(value).unwrap_or(self.threshold).max(SMALL_LIMIT),
            "max_idle" => self.pool.max_idle = size::parse(value).ok().or(self.pool.max_idle),
            "decay" if value == "never" => self.pool.decay = None,
            "decay" => {
                let seconds = value.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                self.pool.decay = seconds.or(self.pool.decay);
            }
            "huge" => self.pool.huge = value != "never",
            "report" => self.reporting.process = value.parse().ok(),
            "quiet" => self.reporting.quiet = value == "1",
            _ => {}
        }
    }
}

/// The name of a file for a report as JSON. In it `%p` stands for the process; `-` is standard output. Names are bytes.
#[derive(Clone)]
pub struct Pattern(pub Vec<u8>);

impl Pattern {
    pub fn is_output(&self) -> bool {
        self.0 == b"-"
    }

    /// Whether each process gets a file of its own.
    pub fn has_process(&self) -> bool {
        self.0.windows(2).any(|two| two == b"%p")
    }

    /// The file of a process.
    pub fn of(&self, process: u32) -> PathBuf {
        let mut name = self.0.clone();
        while let Some(at) = name.windows(2).position(|two| two == b"%p") {
            name.splice(at..at + 2, process.to_string().into_bytes());
        }
        OsString::from_vec(name).into()
    }
}
