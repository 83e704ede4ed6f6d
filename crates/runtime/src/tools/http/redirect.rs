//! Redirects: which are followed, and what goes along.
//!
//! A tool that may repeat freely is followed a few hops, each checked as the first. An effect is not followed: its
//! body was sent, and a redirect does not say whether it was taken.

use hyper::Method;
use hyper::body::Bytes;
use hyper::http::HeaderMap;
use lodestep_core::effect::Class;

use super::Trouble;
use super::answer::Answer;
use super::request::Hop;

/// So many redirects are followed.
pub(super) const MOST: usize = 5;

/// May a request be sent again to where a redirect leads?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carry {
    /// It may: a repeat leaves the same.
    Freely,
    /// It may not: the first receiver may have done it.
    Never,
}

impl Carry {
    pub fn of(class: Class) -> Self {
        if class.is_repeatable() { Self::Freely } else { Self::Never }
    }
}

/// The next hop, when the answer is a redirect that is followed; `None` when the answer stands.
pub(super) fn next(hop: &Hop, answer: &Answer, carry: Carry) -> Result<Option<Hop>, Trouble> {
    let keeps_method = match answer.status {
        307 | 308 => true,
        301 | 302 => hop.method != Method::POST,
        303 => hop.method == Method::GET,
        _ => return Ok(None),
    };
    let Some(location) = answer.text_of("location").filter(|_| carry == Carry::Freely) else { return Ok(None) };
    let target = hop.target.join(location).map_err(|why| given_up(format!("a redirect that is none: {why}"), carry))?;
    if hop.target.tls && !target.tls {
        return Err(given_up("http.redirect_refused: a redirect from https to http".to_owned(), carry));
    }
    let (method, body) = match keeps_method {
        true => (hop.method.clone(), hop.body.clone()),
        false => (Method::GET, Bytes::new()),
    };
    let mut headers = hop.headers.clone();
    if !keeps_method {
        headers.remove("content-type");
    }
    if !target.same_origin(&hop.target) {
        // What the file says for one host, secrets among it, is not for another.
        headers = strangers(&headers);
    }
    let mut target = target;
    if target.authorization.is_none() && target.same_origin(&hop.target) {
        target.authorization = hop.target.authorization.clone();
    }
    Ok(Some(Hop { method, target, headers, body }))
}

fn strangers(headers: &HeaderMap) -> HeaderMap {
    let kept = ["accept", "content-type"].into_iter();
    let kept = kept.filter_map(|name| Some((hyper::http::HeaderName::from_static(name), headers.get(name)?.clone())));
    kept.collect()
}

/// A chain of redirects that is not followed to its end. What may repeat freely has no result; of an effect nothing is known.
pub(super) fn given_up(why: String, carry: Carry) -> Trouble {
    match carry {
        Carry::Freely => Trouble::Refused(why),
        Carry::Never => Trouble::Lost(why),
    }
}
