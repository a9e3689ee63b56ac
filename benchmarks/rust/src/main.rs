//! Times the arena and bumpalo alternately, and prints one JSON object: for each case the nanoseconds of each round,
//! by contender. The first contender runs twice, as itself and as "again", to show the difference between two equal
//! runs.
//!
//! Usage: `firsttouch-benchmarks [ROUNDS [MILLISECONDS [NAME]]]`. A round times each contender for that long, in the
//! cases whose names contain NAME.

mod growth;
mod rewind;
mod timing;

use timing::{Case, compare};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |or: usize| arguments.next().map_or(or, |text| text.parse().expect("a number"));
    let (rounds, milliseconds) = (number(30), number(1));
    let name = arguments.next().unwrap_or_default();
    let cases: Vec<Case> = rewind::cases().into_iter().chain(growth::cases()).collect();
    let lines: Vec<String> =
        cases.iter().filter(|case| case.name.contains(&name)).map(|case| compare(case, rounds, milliseconds)).collect();
    println!("{{\n{}\n}}", lines.join(",\n"));
}
