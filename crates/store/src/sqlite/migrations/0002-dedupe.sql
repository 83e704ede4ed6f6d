-- Dedupe keys that actions have taken, by namespace. fate: 0 nothing is known yet, 1 done with that result, 2 given up.
CREATE TABLE dedupe (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    run INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    same BLOB NOT NULL,
    fate INTEGER NOT NULL,
    result BLOB,
    len INTEGER,
    seq INTEGER,
    PRIMARY KEY (namespace, key)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX dedupe_by_run ON dedupe (run, ordinal);

-- Actions that wait for a dedupe key that another has.
CREATE TABLE dedupe_wait (
    run INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (run, ordinal)
) STRICT, WITHOUT ROWID;
