//! Being laid out.

pub mod process;
pub mod tools {
    //! Being laid out.
    pub mod documents;
    pub mod rooted;
}
