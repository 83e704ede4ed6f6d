//! What the test of the documents is made of: blocks, scenes, and how each language is checked.

pub mod agent_files;
pub mod commands;
pub mod markdown;
pub mod scenes;
pub mod values;
