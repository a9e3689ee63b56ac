//! One thread for each of the trace, of which one at a time plays: who meets another's event hands over to it. A thread
//! starts with its first event and ends with its last; the calling thread is the first.

use super::Outcome;
use super::player::{Next, Player};
use super::survey::Survey;
use crate::format::TraceError;
use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};

struct Shared<'a, R> {
    player: Player<'a, R>,
    /// Whose turn it is; nobody's in the end.
    turn: Option<u32>,
    error: Option<TraceError>,
    /// Who has begun, and where each waits.
    bells: Vec<Option<Arc<Condvar>>>,
}

type Baton<'a, R> = Mutex<Shared<'a, R>>;

pub(super) fn run<R: Read + Send>(player: Player<'_, R>, survey: &Survey) -> Result<Outcome, TraceError> {
    let threads = survey.last.len().max(1);
    let mut bells = vec![None; threads];
    bells[0] = Some(Arc::new(Condvar::new()));
    let baton = Mutex::new(Shared { player, turn: Some(0), error: None, bells });
    thread::scope(|scope| work(scope, &baton, survey, 0));
    let shared = baton.into_inner().unwrap_or_else(PoisonError::into_inner);
    match shared.error {
        Some(error) => Err(error),
        None => Ok(shared.player.finish()),
    }
}

fn locked<'b, 'a, R>(baton: &'b Baton<'a, R>) -> MutexGuard<'b, Shared<'a, R>> {
    baton.lock().unwrap_or_else(PoisonError::into_inner)
}

fn work<'scope, 'a: 'scope, R: Read + Send>(
    scope: &'scope Scope<'scope, '_>,
    baton: &'scope Baton<'a, R>,
    survey: &'scope Survey,
    me: u32,
) {
    let mut shared = locked(baton);
    let Some(bell) = shared.bells[me as usize].clone() else { return };
    loop {
        while shared.turn.is_some_and(|turn| turn != me) {
            shared = bell.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
        if shared.turn.is_none() {
            return;
        }
        match shared.player.run(Some(me)) {
            Ok(Next::Thread(next)) => hand_over(scope, baton, survey, &mut shared, next),
            Ok(Next::End) => return all_done(&mut shared),
            Err(error) => {
                shared.error = Some(error);
                return all_done(&mut shared);
            }
        }
        if me != 0 && shared.player.played() >= survey.last[me as usize] {
            return;
        }
    }
}

fn all_done<R>(shared: &mut Shared<'_, R>) {
    shared.turn = None;
    shared.bells.iter().flatten().for_each(|bell| bell.notify_all());
}

fn hand_over<'scope, 'a: 'scope, R: Read + Send>(
    scope: &'scope Scope<'scope, '_>,
    baton: &'scope Baton<'a, R>,
    survey: &'scope Survey,
    shared: &mut Shared<'a, R>,
    next: u32,
) {
    shared.turn = Some(next);
    let bell = &mut shared.bells[next as usize];
    if let Some(bell) = bell {
        return bell.notify_all();
    }
    *bell = Some(Arc::new(Condvar::new()));
    let started = thread::Builder::new().spawn_scoped(scope, move || work(scope, baton, survey, next));
    if let Err(error) = started {
        shared.error = Some(TraceError::Reading(error));
        all_done(shared);
    }
}
