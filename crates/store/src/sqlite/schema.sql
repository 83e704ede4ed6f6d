-- The tables of a Lodestep store, as all migrations together make them; a test compares the two.
-- Times are microseconds since 1970, digests 32 bytes, packed columns a codec byte and what it packs.

-- What never changes about a run. Everything else names it by its number. The root of a fork's lineage is an id.
CREATE TABLE run (
    number INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    id TEXT NOT NULL,
    -- The id backwards: people name a run by a short end of its id, and one index finds both.
    id_from_end TEXT NOT NULL,
    agent TEXT NOT NULL,
    definition BLOB NOT NULL,
    inputs BLOB NOT NULL,
    started_at INTEGER NOT NULL,
    labels TEXT NOT NULL,
    root TEXT
) STRICT;
CREATE INDEX run_by_root ON run (root) WHERE root IS NOT NULL;
CREATE UNIQUE INDEX run_by_id ON run (namespace, id_from_end);
CREATE INDEX run_by_agent ON run (namespace, agent);
CREATE INDEX run_by_inputs ON run (inputs);

-- What runs are found by. A run's own row has them too, name=value, a line each: a listing reads them there.
CREATE TABLE label (
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    run INTEGER NOT NULL,
    PRIMARY KEY (namespace, name, value, run)
) STRICT, WITHOUT ROWID;

-- Where a run stands. A plain step changes no column that an index names.
-- rewound: the store was put back to an older copy, and the run's journal does not say so yet.
-- undecodable: it can't be read, and no worker gets it before it is released.
-- parked: what comes next is held.
-- has_kin: the lineage has had another run.
CREATE TABLE head (
    run INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    digest BLOB NOT NULL,
    status INTEGER NOT NULL,
    why TEXT NOT NULL,
    due_at INTEGER,
    holder TEXT,
    -- The worker that died and left the run, until a transition follows.
    left_by TEXT,
    crashes INTEGER NOT NULL,
    inbox INTEGER NOT NULL,
    inbox_read INTEGER NOT NULL,
    -- The position of the newest cancel.
    cancel_at INTEGER,
    updated_at INTEGER NOT NULL,
    rewound INTEGER NOT NULL DEFAULT 0,
    undecodable INTEGER NOT NULL DEFAULT 0,
    parked INTEGER NOT NULL DEFAULT 0,
    has_kin INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX head_by_status ON head (namespace, status);
CREATE INDEX head_due ON head (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX head_held ON head (holder) WHERE holder IS NOT NULL;

-- All runs' transitions in order of arrival, so that many runs' steps share a page.
-- vals is NULL once the values were erased, and empty when there were none. What is long stands in pieces.
CREATE TABLE journal (
    n INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    envelope BLOB NOT NULL,
    vals BLOB,
    transcript BLOB
) STRICT;
CREATE UNIQUE INDEX journal_by_run ON journal (run, seq);

-- The digest is of the plain bytes.
CREATE TABLE snapshot (
    n INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    digest BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX snapshot_by_run ON snapshot (run, seq);

-- The digest is over the other columns: a journal names a message by its position alone.
CREATE TABLE message (
    n INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    position INTEGER NOT NULL,
    id TEXT NOT NULL,
    body BLOB NOT NULL,
    sent_at INTEGER NOT NULL,
    digest BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX message_by_position ON message (run, position);
CREATE UNIQUE INDEX message_by_id ON message (run, id);

CREATE TABLE request (
    n INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    name BLOB NOT NULL,
    run INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    is_open INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX request_by_name ON request (namespace, name);
CREATE INDEX request_open ON request (namespace) WHERE is_open = 1;

-- Effects with an intent, at the first one.
CREATE TABLE effect (
    run INTEGER NOT NULL,
    same BLOB NOT NULL,
    ordinal INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (run, same, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE artifact (
    n INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    digest BLOB NOT NULL,
    len INTEGER NOT NULL,
    seq INTEGER NOT NULL
) STRICT;
CREATE INDEX artifact_by_run ON artifact (run);

-- What operators stopped, and the runs that wait for its end. No row of hold is ever removed: numbers only grow.
CREATE TABLE hold (
    n INTEGER PRIMARY KEY,
    target TEXT NOT NULL,
    said_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    since INTEGER NOT NULL,
    ended_at INTEGER,
    ended_by TEXT
) STRICT;
CREATE TABLE parked (hold INTEGER NOT NULL, run INTEGER NOT NULL, PRIMARY KEY (hold, run)) STRICT, WITHOUT ROWID;

-- Workers that may hold runs. The lease is by the boot clock of the machine with that boot id.
CREATE TABLE worker (
    id TEXT PRIMARY KEY,
    pid INTEGER NOT NULL,
    host TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    lease_until_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Which store this is, and how often it was put back to an older copy. A witness beside the file knows both, and how
-- far the journal had come: `witness.rs`.
CREATE TABLE store (name TEXT NOT NULL, timeline INTEGER NOT NULL) STRICT;
INSERT INTO store (name, timeline) VALUES (lower(hex(randomblob(16))), 1);

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

-- Values and transcripts that are too long for several of them to share a page, in pieces that fill it. A piece's number
-- names its transition, its column and its place.
CREATE TABLE piece (n INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;

-- Until when services are not to be asked, as they said themselves.
CREATE TABLE rate_limit (service TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;
