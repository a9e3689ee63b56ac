//! Rounds in shuffled order.

use std::time::{Duration, Instant};

/// A round is the fastest of this many runs, to exclude interruptions.
const QUICKEST_OF: usize = 5;

/// Runs that many iterations.
pub type Work = Box<dyn FnMut(usize)>;

/// The contenders of a case: names and work, the one to be judged first.
pub struct Case {
    pub name: &'static str,
    pub contenders: Vec<(&'static str, fn() -> Work)>,
}

/// One case as a member of a JSON object.
pub fn compare(case: &Case, rounds: usize, milliseconds: usize) -> String {
    let mut contenders: Vec<(&str, Work)> = case.contenders.iter().map(|(name, make)| (*name, make())).collect();
    contenders.insert(1, ("again", (case.contenders[0].1)()));
    let turns = turns(&mut contenders[0].1, Duration::from_millis(milliseconds as u64));
    let mut times = vec![Vec::with_capacity(rounds); contenders.len()];
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    for round in 0..rounds + 1 {
        for last in (1..order.len()).rev() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            order.swap(last, (random % (last as u64 + 1)) as usize);
        }
        for &index in &order {
            let time = (0..QUICKEST_OF).map(|_| seconds(&mut contenders[index].1, turns)).fold(f64::MAX, f64::min);
            let time = time * 1e9 / turns as f64;
            if round > 0 {
                times[index].push(time); // the first round is a warm-up
            }
        }
    }
    let figures = |times: &[f64]| times.iter().map(|time| format!("{time:.4}")).collect::<Vec<_>>().join(", ");
    let members: Vec<String> =
        contenders.iter().zip(&times).map(|((name, _), times)| format!("    {name:?}: [{}]", figures(times))).collect();
    format!("  {:?}: {{\n{}\n  }}", case.name, members.join(",\n"))
}

/// The seconds that `turns` iterations take.
fn seconds(work: &mut Work, turns: usize) -> f64 {
    let began = Instant::now();
    work(turns);
    began.elapsed().as_secs_f64()
}

/// The number of iterations that take about as long as `wanted`.
fn turns(work: &mut Work, wanted: Duration) -> usize {
    let mut turns = 1;
    loop {
        let began = Instant::now();
        work(turns);
        let time = began.elapsed();
        if time * 4 > wanted {
            let exact = turns as f64 * wanted.as_secs_f64() / time.as_secs_f64();
            return (exact as usize).max(1);
        }
        turns *= 2;
    }
}
