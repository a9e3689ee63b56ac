//! Replays each thread of the trace in a thread of its own. One runs at a time, and hands over when the next event
//! belongs to another. A thread is started for its first event and ends after its last; the calling thread is number 0.

use super::player::{Next, Player, ReplayOutcome};
use crate::format::TraceError;
use crate::survey::Survey;
use std::io::{Error, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};

struct SharedReplay<'a, R> {
    player: Player<'a, R>,
    /// The thread whose turn it is; `None` at the end.
    turn: Option<u32>,
    error: Option<TraceError>,
    /// What each thread waits on; `None` if it was not started.
    wake_ups: Vec<Option<Arc<Condvar>>>,
}

pub(super) fn run<R: Read + Send>(player: Player<'_, R>, survey: &Survey) -> Result<ReplayOutcome, TraceError> {
    let threads = survey.last_events.len().max(1);
    let mut wake_ups = vec![None; threads];
    wake_ups[0] = Some(Arc::new(Condvar::new()));
    let replay = Mutex::new(SharedReplay { player, turn: Some(0), error: None, wake_ups });
    thread::scope(|scope| run_thread(scope, &replay, survey, 0));
    let replay = replay.into_inner().unwrap_or_else(PoisonError::into_inner);
    match replay.error {
        Some(error) => Err(error),
        None => Ok(replay.player.finish()),
    }
}

fn lock<'b, 'a, R>(replay: &'b Mutex<SharedReplay<'a, R>>) -> MutexGuard<'b, SharedReplay<'a, R>> {
    replay.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run_thread<'scope, 'a: 'scope, R: Read + Send>(
    scope: &'scope Scope<'scope, '_>,
    replay: &'scope Mutex<SharedReplay<'a, R>>,
    survey: &'scope Survey,
    thread: u32,
) {
    let mut shared = lock(replay);
    let Some(wake_up) = shared.wake_ups[thread as usize].clone() else { return };
    loop {
        while shared.turn.is_some_and(|turn| turn != thread) {
            shared = wake_up.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
        if shared.turn.is_none() {
            return;
        }
        match shared.player.run(Some(thread)) {
            Ok(Next::Thread(next)) => hand_over(scope, replay, survey, &mut shared, next),
            Ok(Next::End) => return end(&mut shared),
            Err(error) => {
                shared.error = Some(error);
                return end(&mut shared);
            }
        }
        if thread != 0 && shared.player.performed() >= survey.last_events[thread as usize] {
            return;
        }
    }
}

fn end<R>(shared: &mut SharedReplay<'_, R>) {
    shared.turn = None;
    shared.wake_ups.iter().flatten().for_each(|wake_up| wake_up.notify_all());
}

fn hand_over<'scope, 'a: 'scope, R: Read + Send>(
    scope: &'scope Scope<'scope, '_>,
    replay: &'scope Mutex<SharedReplay<'a, R>>,
    survey: &'scope Survey,
    shared: &mut SharedReplay<'a, R>,
    next: u32,
) {
    shared.turn = Some(next);
    let wake_up = &mut shared.wake_ups[next as usize];
    if let Some(wake_up) = wake_up {
        return wake_up.notify_all();
    }
    *wake_up = Some(Arc::new(Condvar::new()));
    let started = thread::Builder::new().spawn_scoped(scope, move || run_thread(scope, replay, survey, next));
    if let Err(error) = started {
        let text = format!("cannot start a thread for thread {next} of the trace: {error}");
        shared.error = Some(TraceError::Io(Error::new(error.kind(), text)));
        end(shared);
    }
}
