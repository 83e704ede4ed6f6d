//! One request sent and its answer read.
//!
//! From the first byte on, what goes wrong is unknown; up to it, nothing was sent.

use std::sync::atomic::{AtomicBool, Ordering};

use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper::http::HeaderValue;
use hyper_util::rt::TokioIo;
use tokio::task::AbortHandle;

use super::Trouble;
use super::answer::Answer;
use super::connect::Stream;
use super::request::Hop;

/// The longest body of an answer that is taken.
pub const BODY_BYTES: usize = 64 * 1024 * 1024;

/// Ends the connection with the attempt: what was given up is not read on.
struct Ended(AbortHandle);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends a request over a fresh connection and reads the whole answer.
pub(super) async fn exchange(
    stream: TokioIo<Box<dyn Stream>>,
    hop: &Hop,
    too_late: &(dyn Fn() -> bool + Send + Sync),
    sent: &AtomicBool,
) -> Result<Answer, Trouble> {
    let request = request(hop)?;
    let opened = http1::handshake(stream).await;
    let (mut sender, connection) = opened.map_err(|error| Trouble::NotSent(format!("no connection: {error}")))?;
    // What the connection itself has to say, the request's own error says as well.
    let _ended = Ended(tokio::spawn(async { drop(connection.await) }).abort_handle());
    if too_late() {
        return Err(Trouble::NotSent("the lease ended before it was sent".to_owned()));
    }
    sent.store(true, Ordering::SeqCst);
    let lost =
        |error: hyper::Error| Trouble::Lost(format!("the connection was lost before an answer: {}", shown(&error)));
    let response = sender.send_request(request).await.map_err(lost)?;
    let (head, body) = response.into_parts();
    let status = head.status.as_u16();
    match read(body, status).await {
        Ok(body) => Ok(Answer { status, headers: head.headers, body }),
        // The verdict is in the status; what it says beside it is lost.
        Err(Trouble::Lost(_)) if (400..500).contains(&status) && status != 408 => {
            Ok(Answer { status, headers: head.headers, body: Vec::new() })
        }
        Err(trouble) => Err(trouble),
    }
}

fn request(hop: &Hop) -> Result<Request<Full<hyper::body::Bytes>>, Trouble> {
    let refused = |what: &str| Trouble::Refused(format!("{what} can't be sent"));
    let mut request = Request::new(Full::new(hop.body.clone()));
    *request.method_mut() = hop.method.clone();
    *request.uri_mut() = hop.target.path_and_query.clone().into();
    let headers = request.headers_mut();
    *headers = hop.headers.clone();
    let host = HeaderValue::from_str(&hop.target.host_header()).map_err(|_| refused("the host's name"))?;
    headers.insert("host", host);
    headers.insert("connection", HeaderValue::from_static("close"));
    if let Some(authorization) = &hop.target.authorization {
        let value = HeaderValue::from_str(authorization).map_err(|_| refused("the url's user"))?;
        headers.insert("authorization", value);
    }
    Ok(request)
}

/// Hyper's own words end where the cause begins.
fn shown(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

async fn read(mut body: Incoming, status: u16) -> Result<Vec<u8>, Trouble> {
    let announced = body.size_hint().exact().unwrap_or(0);
    if announced > BODY_BYTES as u64 {
        return Err(Trouble::TooLong(status));
    }
    let mut bytes = Vec::with_capacity(announced.min(1024 * 1024) as usize);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Trouble::Lost(format!("the connection was lost within the answer {status}: {}", shown(&error)))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > BODY_BYTES {
            return Err(Trouble::TooLong(status));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}
