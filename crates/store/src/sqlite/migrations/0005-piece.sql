-- Values and transcripts that are too long for several of them to share a page, in pieces that fill it. A piece's number
-- names its transition, its column and its place.
CREATE TABLE piece (n INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
