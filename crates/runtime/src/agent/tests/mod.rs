//! Agent files as texts: what they compile to, and what is said of their faults.
