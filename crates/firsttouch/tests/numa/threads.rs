//! Threads on nodes, pools, and forks.

use super::view::{Held, SIZE, all_on, in_a_thread, numbers, source};
use firsttouch::adaptors::{Options, Pool};
use firsttouch::numa::run_on;
use firsttouch::numa::topology::Topology;
use firsttouch::os;
use firsttouch::sources::Pages;

pub fn run_on() {
    let pages = Pages::new(false);
    for node in numbers() {
        in_a_thread(|| {
            let before = (os::thread_processors().unwrap(), os::thread_policy().unwrap());
            let Ok((place, why_not)) = run_on::enter(node) else { return };
            assert_eq!((why_not, os::current_node()), (None, node));
            assert_eq!(os::thread_processors().unwrap(), Topology::read().node(node).unwrap().processors);
            all_on(&Held::new(&*pages, SIZE).touched(), node);
            run_on::leave(&place);
            assert_eq!((os::thread_processors().unwrap(), os::thread_policy().unwrap()), before);
        });
    }
}

pub fn nested() {
    in_a_thread(|| {
        let (a, b) = (numbers()[0], numbers()[1]);
        let (outer, _) = run_on::enter(a).unwrap();
        // The affinity is never widened: inside one node there is no way to another.
        assert!(run_on::enter(b).unwrap_err().contains("may use"));
        let (inner, _) = run_on::enter(a).unwrap();
        run_on::leave(&inner);
        assert_eq!(os::current_node(), a);
        run_on::leave(&outer);
        run_on::leave(&run_on::enter(b).unwrap().0);
    });
}

/// What is recycled stays on its node, whoever asks and gives back.
pub fn pool_on_a_node() {
    let node = numbers()[1];
    let pool = Pool::over(source(&node.to_string()), Options::default());
    for at in numbers().into_iter().cycle().take(6) {
        in_a_thread(|| {
            let _ = run_on::enter(at);
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
