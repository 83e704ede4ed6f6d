//! Names and ids: which characters both services take.

/// True for 1 to `longest` of `[a-zA-Z0-9_-]`.
pub(crate) fn fits(name: &str, longest: usize) -> bool {
    (1..=longest).contains(&name.chars().count()) && is_plain(name)
}

/// True for nothing but `[a-zA-Z0-9_-]`.
pub(crate) fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}
