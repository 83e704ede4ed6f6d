//! The right to advance runs: taken once for a worker, renewed in the background, checked before anything is sent.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lodestep_core::{Result, Timestamp};
use lodestep_store::{Clock, LEASE_US, Store, WorkerId};
use tokio::task::JoinHandle;

use crate::process::Cage;
use crate::runtime::Runtime;
use crate::worker::Shutdown;
use crate::worker::trouble::{Trouble, will_pass};

/// Nothing is sent in the last part of a lease: a slow send must not reach into another worker's time.
const MARGIN_US: u64 = LEASE_US / 3;

/// How often the lease is renewed.
const RENEWAL: Duration = Duration::from_micros(LEASE_US / 3);

/// How soon a renewal that the store did not take is tried again: with room on its disk, sending begins again.
const RENEWAL_AGAIN: Duration = Duration::from_secs(1);

/// A worker's lease, renewed while this lives.
pub(super) struct Lease {
    shared: Shared,
    renewal: JoinHandle<()>,
}

/// What runs see of their worker's lease.
#[derive(Clone)]
pub(super) struct Shared {
    pub worker: WorkerId,
    pub tools_lock: Option<PathBuf>,
    /// What every tool process is kept from.
    pub cage: Arc<Cage>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    until_us: Arc<AtomicU64>,
    /// What was told of the store's state.
    pub trouble: Arc<Trouble>,
}

impl Lease {
    /// Makes a worker known and keeps its lease. When the lease is lost, the worker is told to stop.
    pub async fn take(runtime: &Runtime, shutdown: Shutdown) -> Result<Self> {
        let worker = runtime.store.enlist().await?;
        let until = runtime.store.renew(&worker).await?;
        let shared = Shared {
            tools_lock: runtime.store.tools_lock(&worker),
            cage: Arc::new(Cage { keep_out: runtime.own_paths(), demand: runtime.cage }),
            worker,
            store: runtime.store.clone(),
            clock: runtime.clock.clone(),
            until_us: Arc::new(AtomicU64::new(until)),
            trouble: Arc::default(),
        };
        let renewal = tokio::spawn(runtime.task(renew(shared.clone(), shutdown)));
        Ok(Self { shared, renewal })
    }

    pub fn worker(&self) -> &WorkerId {
        &self.shared.worker
    }

    pub fn share(&self) -> Shared {
        self.shared.clone()
    }

    /// Ends the worker: what it still holds is due at once. A store that can't be written now learns it from the lock that
    /// is let go of.
    pub async fn give_back(self) -> Result<()> {
        self.renewal.abort();
        match self.shared.store.retire(&self.shared.worker).await {
            Err(error) if will_pass(&error) => Ok(()),
            retired => retired,
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

impl Shared {
    /// How long something may still be sent, in microseconds of the boot clock; 0 when not at all.
    pub fn left_us(&self) -> u64 {
        let until = self.until_us.load(Ordering::SeqCst).saturating_sub(MARGIN_US);
        until.saturating_sub(self.clock.boot_us())
    }

    /// The same as a point in wall time, for the journal.
    pub fn send_by(&self) -> Timestamp {
        self.store.now().plus_ms(self.left_us() / 1_000)
    }

    /// Is it too late to send? Read from the boot clock, without I/O, right before the first byte.
    pub fn is_too_late(&self) -> bool {
        self.left_us() == 0
    }
}

async fn renew(shared: Shared, shutdown: Shutdown) {
    let mut pause = RENEWAL;
    loop {
        tokio::time::sleep(pause).await;
        pause = RENEWAL;
        match shared.store.renew(&shared.worker).await {
            Ok(until) => shared.until_us.store(until, Ordering::SeqCst),
            Err(error) if error.code() == "lease.lost" => {
                shared.until_us.store(0, Ordering::SeqCst);
                crate::note!(
                    "this worker stood still for longer than its lease: another has its runs now, and it ends"
                );
                return shutdown.begin();
            }
            // The store may be back before the lease ends; if not, nothing is sent before it is.
            Err(_) => pause = RENEWAL_AGAIN,
        }
    }
}
