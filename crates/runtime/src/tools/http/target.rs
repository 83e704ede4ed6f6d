//! An url, taken apart: where to connect, what to ask for, who asks.
//!
//! It does not resolve names and does not judge addresses.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Uri;
use hyper::http::uri::PathAndQuery;
use percent_encoding::percent_decode_str;

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Over TLS?
    pub tls: bool,
    /// The name or address, in lower case, without brackets.
    pub host: String,
    pub port: u16,
    /// As it is sent: from the first `/`.
    pub path_and_query: PathAndQuery,
    /// The value of an `Authorization` header, when the url names a user.
    pub authorization: Option<String>,
}

impl Target {
    /// Takes an absolute url apart.
    ///
    /// The error never shows the url: it may hold a secret.
    pub fn parse(url: &str) -> Result<Self, String> {
        let whole = url.split('#').next().unwrap_or_default();
        let scheme = whole.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        let tls = match scheme.as_deref() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err("the url has to begin with http:// or https://".to_owned()),
        };
        let uri: Uri = whole.parse().map_err(|error| format!("the url can't be read: {error}"))?;
        let authority = uri.authority().ok_or("the url names no host")?;
        let user = authority.as_str().rsplit_once('@').map(|(user, _)| user);
        let host = authority.host().trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
        if host.is_empty() {
            return Err("the url names no host".to_owned());
        }
        let behind = authority.as_str().rsplit_once(authority.host()).map_or("", |(_, behind)| behind);
        let port = match behind.strip_prefix(':') {
            None => {
                if tls {
                    443
                } else {
                    80
                }
            }
            Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or("the url's port is no port")?,
        };
        let slash = PathAndQuery::from_static("/");
        let path_and_query = match uri.path_and_query() {
            Some(path) if path.as_str().starts_with('/') => path.clone(),
            Some(path) if path.as_str().starts_with('?') => format!("/{}", path.as_str()).parse().unwrap_or(slash),
            _ => slash,
        };
        if has_dot_segment(path_and_query.path()) {
            return Err("the url's path has a segment `.` or `..`: it would lead elsewhere".to_owned());
        }
        Ok(Self { tls, host, port, path_and_query, authorization: user.map(basic) })
    }

    /// The value of the `Host` header.
    pub fn host_header(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = if self.tls { 443 } else { 80 };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }

    /// Do two urls have the same scheme, host and port?
    pub fn same_origin(&self, other: &Self) -> bool {
        (self.tls, &self.host, self.port) == (other.tls, &other.host, other.port)
    }

    /// Where a `Location` leads from here.
    pub fn join(&self, location: &str) -> Result<Self, String> {
        let scheme = if self.tls { "https" } else { "http" };
        let origin = format!("{scheme}://{}", self.host_header());
        let folder = self.path_and_query.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        let has_scheme = location.split(['/', '?', '#']).next().is_some_and(|start| start.contains(':'));
        let url = match location {
            absolute if has_scheme => absolute.to_owned(),
            same_scheme if location.starts_with("//") => format!("{scheme}:{same_scheme}"),
            rooted if location.starts_with('/') => format!("{origin}{rooted}"),
            query if location.starts_with('?') => format!("{origin}{}{query}", self.path_and_query.path()),
            relative => format!("{origin}{folder}/{relative}"),
        };
        Self::parse(&url)
    }
}

/// `.` and `..`, also percent-encoded: receivers resolve them, so that the path would not be the one that was meant.
fn has_dot_segment(path: &str) -> bool {
    path.split('/').any(|segment| {
        let plain = segment.replace("%2e", ".").replace("%2E", ".");
        plain == "." || plain == ".."
    })
}

fn basic(user: &str) -> String {
    let decoded: Vec<u8> = percent_decode_str(user).collect();
    format!("Basic {}", STANDARD.encode(decoded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_url_is_taken_apart() {
        let target = Target::parse("https://ada:p%40ss@API.example.:8443/v1/x?y=1#z").unwrap();
        assert_eq!((target.tls, target.host.as_str(), target.port), (true, "api.example", 8443));
        assert_eq!(target.path_and_query.as_str(), "/v1/x?y=1");
        assert_eq!(target.authorization.as_deref(), Some("Basic YWRhOnBAc3M="));
        assert_eq!(target.host_header(), "api.example:8443");
        assert_eq!(Target::parse("http://[::1]/").unwrap().host, "::1");
        assert_eq!(Target::parse("http://x?y=1").unwrap().path_and_query.as_str(), "/?y=1");
    }

    #[test]
    fn what_is_no_url_is_refused_without_being_shown() {
        for url in [
            "ftp://x/",
            "x",
            "/x",
            "http:///x",
            "http://x:99999/",
            "http://x:0/",
            "https://x/a/%2E%2e/hunter2",
            "http://x/../y",
        ] {
            let why = Target::parse(url).expect_err(url);
            assert!(!why.contains("hunter2"), "{why}");
        }
    }

    #[test]
    fn a_location_leads_from_where_it_was_said() {
        let from = Target::parse("https://u:p@x:81/a/b?c").unwrap();
        for (location, expected) in [
            ("https://y/z", "https://y/z"),
            ("//y/z", "https://y/z"),
            ("/z", "https://x:81/z"),
            ("?d", "https://x:81/a/b?d"),
            ("z:1", "error"),
            ("z", "https://x:81/a/z"),
            ("./z", "error"),
        ] {
            let joined = from.join(location).map(|to| {
                assert_eq!(to.authorization, None);
                format!("{}://{}{}", if to.tls { "https" } else { "http" }, to.host_header(), to.path_and_query)
            });
            assert_eq!(joined.unwrap_or_else(|_| "error".to_owned()), expected, "{location}");
        }
    }
}
