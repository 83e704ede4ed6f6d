//! Tools that are HTTP requests: one attempt is one request and its redirects, and what was seen of it.
//!
//! Every connection is made for one request and closed after it, so that nothing is ever sent again by a pool. No proxy is used: the
//! address that is connected to is the one that is checked.
//!
//! - `request`: references filled in; where the arguments go.
//! - `target`: an url, taken apart.
//! - `address`: which addresses may be connected to.
//! - `connect`: name, connection, TLS. Nothing of a request is sent here.
//! - `exchange`: a request sent and its answer read, within time and size.
//! - `redirect`: which redirects are followed, and what goes along.
//! - `answer`: what an answer means.
//! - `lookup`: what an answer says of an effect.
//! - `heard`: a receiver that says whatever a test wants.

mod address;
mod answer;
mod connect;
mod exchange;
#[cfg(feature = "testing")]
mod heard;
mod lookup;
mod redirect;
mod request;
mod target;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lodestep_core::definition::{HttpRequest, HttpTool};
use lodestep_core::effect::{Class, Seen};
use lodestep_core::rules::settle::LookedUp;
use lodestep_core::time::Timestamp;
use serde_json::Value;

use crate::secrets::{Environment, Removed, Scrubber};
use crate::tools::Sight;

pub(crate) use address::may_connect;
pub use connect::{HttpClient, Resolve, Resolved};
pub use exchange::BODY_BYTES;
#[cfg(feature = "testing")]
pub use heard::Heard;
pub(crate) use target::Target;

/// One request of an action.
pub(crate) struct Call<'a> {
    pub client: &'a HttpClient,
    pub environment: &'a Environment,
    pub scrubber: &'a Scrubber,
    pub tool: &'a HttpTool,
    pub class: Class,
    /// True when an attempt before this one may have been sent: then nothing that happens here can say that it failed.
    pub maybe_sent: bool,
    pub inputs: &'a Value,
    /// The arguments as they were committed.
    pub arguments: &'a Value,
    /// The bytes of the arguments that are artifacts, by argument.
    pub artifacts: &'a BTreeMap<String, Vec<u8>>,
    pub key: &'a str,
    /// Headers of the runtime's own: tool, run, action, attempt, epoch.
    pub identity: &'a [(&'static str, String)],
    pub timeout: Duration,
    pub now: Timestamp,
    /// Asked right before the first byte: is it too late to send?
    pub too_late: Box<dyn Fn() -> bool + Send + Sync + 'a>,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Attempt,
    LookUp,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Trouble {
    /// No byte was sent; another try may fare better.
    NotSent(String),
    /// No byte was sent, and none will be: an address or an argument that is refused.
    Refused(String),
    /// Something was sent, and no whole answer came.
    Lost(String),
    /// An answer of this status is longer than is taken.
    TooLong(u16),
}

impl Call<'_> {
    /// Sends it as an attempt. An answer is cleaned of secrets before anything of it is cut.
    pub async fn attempt(&self, stop: impl Future<Output = ()>, removed: &mut Removed) -> Sight {
        let sent = AtomicBool::new(false);
        let answered = async {
            match self.exchange(&self.tool.request, Purpose::Attempt, &sent, removed).await {
                Ok(answer) if self.maybe_sent && self.class == Class::Keyed => answer::later_sight(answer, self.now),
                Ok(answer) => answer::sight(answer, self.class, self.now),
                Err(trouble) => self.troubled(trouble),
            }
        };
        let was_sent = || sent.load(Ordering::SeqCst);
        tokio::select! {
            biased;
            sight = answered => sight,
            () = tokio::time::sleep(self.timeout) => {
                let seconds = self.timeout.as_secs_f32();
                match was_sent() {
                    true => Sight::new(Seen::TimedOut, format!("no whole answer within {seconds} s")),
                    false => Sight::new(Seen::NotStarted, format!("no connection within {seconds} s")),
                }
            }
            () = stop => Sight::new(
                if was_sent() { Seen::Interrupted } else { Seen::NotStarted },
                "stopped by the worker",
            ),
        }
    }

    fn troubled(&self, trouble: Trouble) -> Sight {
        match trouble {
            Trouble::NotSent(why) => Sight::new(Seen::NotStarted, why),
            // An earlier attempt may have happened: this one's refusal does not say that it failed.
            Trouble::Refused(why) if self.maybe_sent => Sight::new(Seen::NotStarted, why),
            Trouble::Refused(why) => Sight::new(Seen::Refused, why),
            Trouble::Lost(why) => Sight::new(Seen::Interrupted, why),
            Trouble::TooLong(status) => answer::too_long(status, self.class),
        }
    }

    /// Sends it as a lookup. No answer says nothing: the lookup is asked again.
    pub async fn look_up(&self, stop: impl Future<Output = ()>, removed: &mut Removed) -> LookedUp {
        let Some(lookup) = &self.tool.lookup else { return LookedUp::Unknown("it has no lookup".to_owned()) };
        let sent = AtomicBool::new(false);
        let answered = self.exchange(&lookup.request, Purpose::LookUp, &sent, removed);
        let answer = tokio::select! {
            biased;
            answer = answered => answer,
            () = tokio::time::sleep(self.timeout) => {
                Err(Trouble::NotSent(format!("no whole answer within {} s", self.timeout.as_secs_f32())))
            }
            () = stop => return LookedUp::NotNow("stopped by the worker".to_owned()),
        };
        match answer {
            Ok(answer) => lookup::said(lookup, &answer),
            Err(Trouble::NotSent(why) | Trouble::Lost(why)) => LookedUp::NoAnswer(why),
            Err(Trouble::Refused(why)) => LookedUp::Unknown(why),
            Err(Trouble::TooLong(_)) => LookedUp::Unknown(answer::too_long_text()),
        }
    }

    async fn exchange(
        &self,
        request: &HttpRequest,
        purpose: Purpose,
        sent: &AtomicBool,
        removed: &mut Removed,
    ) -> Result<answer::Answer, Trouble> {
        let carry = match purpose {
            Purpose::Attempt => redirect::Carry::of(self.class),
            Purpose::LookUp => redirect::Carry::Freely,
        };
        let mut hop = request::filled(self, request, purpose)?;
        for _ in 0..=redirect::MOST {
            let stream = self.client.connect(&hop.target, &self.tool.allow_hosts).await?;
            let mut answer = exchange::exchange(stream, &hop, self.too_late.as_ref(), sent).await?;
            if let Some(next) = redirect::next(&hop, &answer, carry)? {
                hop = next;
                continue;
            }
            removed.add(self.scrubber.scrub(&mut answer.body));
            return Ok(answer);
        }
        let most = redirect::MOST;
        Err(redirect::given_up(format!("http.redirects: more than {most} redirects"), carry))
    }
}
