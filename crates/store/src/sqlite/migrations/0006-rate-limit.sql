-- Until when services are not to be asked, as they said themselves.
CREATE TABLE rate_limit (service TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;
