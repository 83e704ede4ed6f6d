-- Files of values that no transition named when a pass first looked, and when that was.
CREATE TABLE unnamed_value (digest BLOB PRIMARY KEY, since INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- Runs that were removed: their ids begin no other run, and their numbers are not used again.
CREATE TABLE removed_run (
    number INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    id TEXT NOT NULL,
    removed_at INTEGER NOT NULL
) STRICT;
CREATE INDEX removed_run_by_id ON removed_run (namespace, id);

-- Requests go with their run.
CREATE INDEX request_by_run ON request (run);
