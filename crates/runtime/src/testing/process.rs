//! A simulated process: its tasks can be killed before any poll, held up, or frozen as a whole.
//!
//! A kill drops what the tasks hold, as the death of a process does, and none of them is ever polled again. What they
//! sent before is outside and goes on.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep};

use super::chance::Chance;
use super::faults::Faults;

/// When a process dies, where that is not left to chance. Counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    /// Before this poll of any of its tasks.
    Poll(u64),
    /// Right after this write of its took effect, before the answer.
    Write(u64),
}

/// One process.
pub(super) struct Process {
    chance: Arc<Chance>,
    faults: Faults,
    state: Mutex<State>,
    died: Notify,
}

struct State {
    is_alive: bool,
    polls: u64,
    writes: u64,
    kill: Option<Kill>,
    frozen_until: Option<Instant>,
}

/// What a task may do now.
enum Turn {
    Poll,
    Later,
    Frozen(Instant),
    Never,
}

impl Process {
    /// A process that dies then, or by chance.
    pub(super) fn start(chance: Arc<Chance>, faults: Faults, kill: Option<Kill>) -> Arc<Self> {
        let state = State { is_alive: true, polls: 0, writes: 0, kill, frozen_until: None };
        Arc::new(Self { chance, faults, state: Mutex::new(state), died: Notify::new() })
    }

    /// Makes a future a task of this process.
    pub(super) fn task<T: Send + 'static>(self: &Arc<Self>, future: BoxFuture<'static, T>) -> BoxFuture<'static, T> {
        Box::pin(Task { process: self.clone(), future: Some(future), thaw: None })
    }

    /// Ends it now.
    pub(super) fn kill(&self) {
        self.lock().is_alive = false;
        self.died.notify_waiters();
    }

    pub(super) fn is_alive(&self) -> bool {
        self.lock().is_alive
    }

    /// How often its tasks were polled.
    pub(super) fn polls(&self) -> u64 {
        self.lock().polls
    }

    /// How often it wrote to the store.
    pub(super) fn writes(&self) -> u64 {
        self.lock().writes
    }

    /// A write of its took effect.
    pub(super) fn wrote(&self) {
        let mut state = self.lock();
        state.writes += 1;
        if state.kill == Some(Kill::Write(state.writes)) {
            drop(state);
            self.kill();
        }
    }

    /// Ends when it is dead.
    pub(super) async fn death(&self) {
        loop {
            let died = self.died.notified();
            if !self.is_alive() {
                return;
            }
            died.await;
        }
    }

    fn turn(&self) -> Turn {
        let mut state = self.lock();
        if !state.is_alive {
            return Turn::Never;
        }
        if let Some(until) = state.frozen_until {
            if until > Instant::now() {
                return Turn::Frozen(until);
            }
            state.frozen_until = None;
        }
        state.polls += 1;
        if state.kill == Some(Kill::Poll(state.polls)) || self.chance.permille(self.faults.kill) {
            state.is_alive = false;
            drop(state);
            self.died.notify_waiters();
            return Turn::Never;
        }
        if self.chance.permille(self.faults.freeze) {
            let until = Instant::now() + self.chance.ms_below(self.faults.longest_freeze_ms);
            state.frozen_until = Some(until);
            return Turn::Frozen(until);
        }
        if self.chance.permille(self.faults.stall) { Turn::Later } else { Turn::Poll }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A future whose polls are the process's.
struct Task<T> {
    process: Arc<Process>,
    future: Option<BoxFuture<'static, T>>,
    thaw: Option<Pin<Box<Sleep>>>,
}

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        loop {
            match self.process.turn() {
                Turn::Poll => {
                    let Some(future) = self.future.as_mut() else { return Poll::Pending };
                    return future.as_mut().poll(context);
                }
                Turn::Later => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Turn::Frozen(until) => {
                    let mut thaw = Box::pin(tokio::time::sleep_until(until + Duration::from_millis(1)));
                    let is_over = thaw.as_mut().poll(context).is_ready();
                    self.thaw = Some(thaw);
                    if !is_over {
                        return Poll::Pending;
                    }
                }
                Turn::Never => {
                    self.future = None;
                    return Poll::Pending;
                }
            }
        }
    }
}
