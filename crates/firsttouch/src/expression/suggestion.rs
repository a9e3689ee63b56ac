//! Did-you-mean suggestions: the known word that is nearest to an unknown one.

/// Returns `" (did you mean pool?)"`, or an empty string if no known word is near.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let lower = word.to_lowercase();
    let near = known.into_iter().map(|known| (distance(&lower, &known.to_lowercase()), known)).min();
    near.filter(|&(distance, known)| 3 * distance <= word.chars().count().max(known.len()))
        .map_or_else(String::new, |(_, known)| format!(" (did you mean {known}?)"))
}

/// The number of insertions, deletions, replacements and swaps of neighbors that lead from one word to the other
/// (optimal string alignment distance).
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = [vec![0; to.len() + 1], (0..=to.len()).collect(), vec![0; to.len() + 1]];
    for (i, &a) in from.iter().enumerate() {
        let [before, last, row] = &mut rows;
        row[0] = i + 1;
        for (j, &b) in to.iter().enumerate() {
            row[j + 1] = (last[j] + usize::from(a != b)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a == to[j - 1] && from[i - 1] == b {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        rows.rotate_left(1);
    }
    rows[1][to.len()]
}

#[cfg(test)]
mod tests {
    use super::{did_you_mean, distance};

    #[test]
    fn the_nearest_word_where_one_is_near() {
        let known = ["pool", "pages", "mimalloc", "malloc", "decay", "max_idle"];
        for (word, meant) in [
            ("pol", "pool"),
            ("mimaloc", "mimalloc"),
            ("pags", "pages"),
            ("decai", "decay"),
            ("POOL", "pool"),
            ("maxidle", "max_idle"),
        ] {
            assert_eq!(did_you_mean(word, known), format!(" (did you mean {meant}?)"));
        }
        for word in ["__import__", "x", "", "firsttouch"] {
            assert_eq!(did_you_mean(word, known), "");
        }
    }

    #[test]
    fn distances() {
        for (from, to, expected) in
            [("", "", 0), ("a", "", 1), ("", "ab", 2), ("ab", "ba", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!((distance(from, to), distance(to, from)), (expected, expected), "{from} {to}");
        }
    }
}
