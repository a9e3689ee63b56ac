//! The report as JSON, with the names that the reports of Python programs have.

use super::figures::{Figures, Spent};
use super::words;
use std::fmt::Write;

pub fn report(process: u32, main: bool, command: &[String], figures: &Figures, threshold: usize) -> String {
    let Figures { spent: Spent { wall, usage, children, resident }, pool } = figures;
    let list = |texts: &[String]| texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", ");
    let resident = match resident {
        Some((now, peak)) => format!("{{\"now\": {now}, \"peak\": {peak}}}"),
        None => "{\"now\": null, \"peak\": null}".to_owned(),
    };
    let counts = pool.figures().into_iter().chain([("small_limit", threshold as u64)]);
    let counts: Vec<String> = counts.map(|(name, count)| format!("\"{name}\": {count}")).collect();
    let avoided = pool.recycled_bytes / firsttouch::os::page_size() as u64;
    format!(
        "{{\n  \"process\": {process},\n  \"main_process\": {main},\n  \"command\": [{}],\n  \"python\": null,\n  \
         \"pooled\": true,\n  \"seconds\": {{\"wall\": {wall:.6}, \"user\": {:.6}, \"kernel\": {:.6}}},\n  \
         \"children_seconds\": {children:.6},\n  \"faults\": {{\"minor\": {}, \"major\": {}}},\n  \
         \"resident_bytes\": {resident},\n  \"pool\": {{{}}},\n  \
         \"estimates\": {{\"avoided_bytes\": {}, \"avoided_faults\": {avoided}}},\n  \"remarks\": [{}]\n}}\n",
        list(command),
        usage.user,
        usage.kernel,
        usage.minor_faults,
        usage.major_faults,
        counts.join(", "),
        pool.recycled_bytes,
        list(&words::remarks(figures, threshold)),
    )
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", control as u32); // a String takes everything
            }
            other => quoted.push(other),
        }
    }
    quoted + "\""
}
