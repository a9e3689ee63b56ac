//! Pools on nodes, and forks.

use super::view::{Held, SIZE, all_on, numbers, on_node, source};
use firsttouch::adaptors::{Options, Pool};

/// What is recycled stays on its node, whoever asks and gives back.
pub fn pool_on_a_node() {
    let node = numbers()[1];
    let pool = Pool::over(source(&node.to_string()), Options::default());
    for at in numbers().into_iter().cycle().take(6) {
        on_node(at, || {
            let held: Vec<_> = (0..4).map(|_| Held::new(&*pool, SIZE).touched()).collect();
            held.iter().for_each(|held| all_on(held, node));
        });
    }
}

pub fn forked() {
    let (a, b) = (numbers()[0], numbers()[1]);
    let (on_a, on_b) = (source(&a.to_string()), source(&b.to_string()));
    let held = Held::new(&*on_a, SIZE).touched();
    // SAFETY: the child uses what is made for forks, and leaves without running anybody's destructors.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let fine = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let held = held.touched(); // copies
            all_on(&held, a);
            all_on(&Held::new(&*on_b, SIZE).touched(), b);
        }));
        // SAFETY: as above.
        unsafe { libc::_exit(i32::from(fine.is_err())) }
    }
    let mut status = 0;
    // SAFETY: the child is ours.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0);
    all_on(&held, a);
}
