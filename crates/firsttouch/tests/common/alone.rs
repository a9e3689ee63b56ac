//! Tests that need a process of their own: limits, forks, failing calls, resident memory.

use super::process::PATIENCE;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const CHILD: &str = "FIRSTTOUCH_TEST_ALONE";

/// Makes a test of each of these functions, in a process of its own, and under a condition if one is given.
#[allow(unused_macros)]
macro_rules! each_alone {
    ($($name:ident)*) => { each_alone!(true; $($name)*); };
    ($when:expr; $($name:ident)*) => {
        mod alone {
            $(#[test]
            fn $name() {
                let (_, name) = concat!(module_path!(), "::", stringify!($name)).split_once("::").unwrap();
                crate::common::alone::alone(name, || if $when { super::$name() });
            })*
        }
    };
}
#[allow(unused_imports)]
pub(crate) use each_alone;

/// Runs `body` in a fresh process, as the only test of this binary. `name` is the test's own.
pub fn alone(name: &str, body: impl FnOnce()) {
    alone_after(name, |_| {}, body);
}

/// The same; `prepare` changes how the process starts.
pub fn alone_after(name: &str, prepare: impl FnOnce(&mut Command), body: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--nocapture", "--test-threads=1"]).env(CHILD, "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    prepare(&mut command);
    let mut child = command.spawn().unwrap();
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > 2 * PATIENCE {
            let _ = child.kill();
            panic!("{name} did not end within {:?}", 2 * PATIENCE);
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let output = std::io::read_to_string(child.stdout.take().unwrap()).unwrap();
    assert!(status.success(), "{name}: {status}\n{output}");
    assert!(output.contains("1 passed"), "no test is called {name}:\n{output}");
}
