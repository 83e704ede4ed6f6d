//! The SQLite store beyond the suite: its file, and several processes on it.

mod database;
mod garbage;
mod long_log;
mod processes;
mod script;
