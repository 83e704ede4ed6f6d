//! The SQLite store beyond the suite: its file, and several processes on it.

mod database;
mod garbage;
mod processes;
mod script;
