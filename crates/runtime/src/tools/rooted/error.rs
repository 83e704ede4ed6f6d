//! What can go wrong below a root.

use std::{fmt, io};

use super::name::NameError;

/// Why a file below a root was not read or written. Its text names the file, the reason and the
/// next step.
///
/// After each, nothing outside of the root has been read, written, made or removed.
#[derive(Debug)]
pub enum RootedError {
    /// The name alone is refused.
    Name(NameError),
    /// The file, or a folder on the way to it, is a symbolic link.
    Link(String),
    /// The file has another name somewhere, which may be outside of the root.
    HardLink(String),
    /// The name is a folder's, or that of a device, pipe or socket.
    NotAFile(String),
    /// A part of the way to the file is a file itself.
    NotAFolder(String),
    /// There is no such file.
    Missing(String),
    /// The system refused.
    Io {
        /// The name that was given.
        name: String,
        /// What was tried, as a verb: "read".
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl fmt::Display for RootedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RootedError::Name(error) => error.fmt(f),
            RootedError::Link(name) => {
                write!(f, "{name:?} is refused: it is, or lies behind, a symbolic link; use the name of a plain file")
            }
            RootedError::HardLink(name) => {
                write!(
                    f,
                    "{name:?} is refused: the file has a second name (a hard link); use a copy under another name"
                )
            }
            RootedError::NotAFile(name) => {
                write!(f, "{name:?} is not a file; use the name of a file")
            }
            RootedError::NotAFolder(name) => {
                write!(f, "{name:?} lies below a file, which is not a folder; use another name")
            }
            RootedError::Missing(name) => write!(f, "there is no file {name:?}; list the files to see their names"),
            RootedError::Io { name, action, source } => {
                write!(f, "could not {action} {name:?}: {source}; check the folder's permissions and free space")
            }
        }
    }
}

impl std::error::Error for RootedError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RootedError::Name(error) => Some(error),
            RootedError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<NameError> for RootedError {
    fn from(error: NameError) -> Self {
        RootedError::Name(error)
    }
}
