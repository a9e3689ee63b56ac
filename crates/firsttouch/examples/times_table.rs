//! Computes a times table in scratch memory: `cargo run --example times_table -p firsttouch -- 5 7`
//!
//! The table is allocated in a scope, and each row in a nested scope, so that all rows use the same memory. When the outer
//! scope ends nothing is in use, and nothing had to be freed.

use firsttouch::AllocError;
use firsttouch::scratch::{Arena, Scratch};

/// Returns the table of `rows` by `columns` as text, with aligned columns.
fn times_table(arena: &mut Arena, rows: usize, columns: usize) -> Result<String, AllocError> {
    arena.scope(|s| {
        let table = s.alloc_slice::<u64>(rows * columns)?;
        for row in 0..rows {
            s.scope(|inner| {
                let numbers = inner.alloc_slice_with(columns, |column| ((row + 1) * (column + 1)) as u64)?;
                table[row * columns..][..columns].copy_from_slice(numbers);
                Ok::<_, AllocError>(())
            })?;
        }
        let width = table.last().map_or(0, |largest| largest.to_string().len());
        let mut text = String::new(); // not in scratch memory, as it leaves the scope
        for row in table.chunks(columns.max(1)) {
            let words: Vec<String> = row.iter().map(|number| format!("{number:>width$}")).collect();
            text += &(words.join(" ") + "\n");
        }
        Ok(text)
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = || arguments.next().map_or(Ok(10), |text| text.parse::<u16>());
    let (Ok(rows), Ok(columns)) = (number(), number()) else {
        return Err("usage: times_table [ROWS [COLUMNS]], two numbers up to 65535".into());
    };
    let mut arena = Arena::new();
    print!("{}", times_table(&mut arena, rows.into(), columns.into())?);
    eprintln!("{} bytes in use, {} held", arena.used(), arena.capacity());
    Ok(())
}

#[test]
fn the_table_is_right() {
    let mut arena = Arena::new();
    for _ in 0..3 {
        assert_eq!(times_table(&mut arena, 2, 3).unwrap(), "1 2 3\n2 4 6\n");
        assert_eq!(times_table(&mut arena, 3, 4).unwrap(), " 1  2  3  4\n 2  4  6  8\n 3  6  9 12\n");
        assert_eq!(times_table(&mut arena, 0, 5).unwrap() + &times_table(&mut arena, 5, 0).unwrap(), "");
        assert_eq!(arena.used(), 0);
    }
    assert_eq!(times_table(&mut arena, 500, 500).unwrap().lines().count(), 500);
}

/// In fixed memory, which is too small for the second table.
#[test]
fn the_table_does_not_fit() {
    let mut storage = [std::mem::MaybeUninit::uninit(); 200];
    let mut arena = Arena::over(&mut storage);
    assert_eq!(times_table(&mut arena, 4, 4).unwrap().lines().count(), 4);
    let error = times_table(&mut arena, 5, 5).unwrap_err();
    assert!(error.to_string().contains("has 200 bytes"), "{error}");
    assert_eq!(arena.used(), 0);
}
