-- Immutable content. Its id is the hash of its bytes and is not stored; every read checks it.
CREATE TABLE object (
    number  INTEGER PRIMARY KEY,
    kind    INTEGER NOT NULL,
    packing INTEGER NOT NULL,           -- 0 plain, 1 zstd
    born    INTEGER NOT NULL,           -- seconds since 1970: garbage is left alone for a while
    body    BLOB NOT NULL
) STRICT;

-- Locates objects by the first eight bytes of their ids.
CREATE TABLE object_index (
    prefix INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (prefix, number)
) STRICT, WITHOUT ROWID;

-- The same for recent objects, in order of arrival. Ids are random, so that each would dirty a different page of
-- the sorted index; many are moved there at once instead. The row with the highest number always stays, so that no
-- number is used twice.
CREATE TABLE object_recent (
    number INTEGER PRIMARY KEY,
    first  INTEGER NOT NULL,            -- the number of the first object; the others follow it
    names  BLOB NOT NULL                -- eight bytes of each name
) STRICT;

-- Content that was destroyed on purpose; the log still refers to it.
CREATE TABLE redaction (
    id   BLOB PRIMARY KEY,
    kind INTEGER NOT NULL,
    time INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Content that a repair found missing. Verification does not report a recorded loss again.
CREATE TABLE lost (
    id   BLOB PRIMARY KEY,
    kind INTEGER NOT NULL,
    time INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Damaged rows that a repair moved aside, unchanged: a repair deletes nothing.
-- `prefix` is the index key of an object, `thread` the thread of an operation.
CREATE TABLE quarantine (
    number  INTEGER PRIMARY KEY,
    source  TEXT NOT NULL,              -- the table it came from
    place   INTEGER NOT NULL,           -- its number or sequence there
    thread  INTEGER,
    version INTEGER,
    prefix  INTEGER,
    kind    INTEGER,
    packing INTEGER,
    id      BLOB,
    body    BLOB,
    time    INTEGER NOT NULL
) STRICT;

-- One row for each time that content was destroyed: invalidates the caches of all processes.
CREATE TABLE erasure (
    number INTEGER PRIMARY KEY
) STRICT;

-- The logs of all threads, in the order of writing. A purged thread leaves one row without a body, so that
-- followers of the log learn of the purge and no sequence number is used twice.
CREATE TABLE operation (
    sequence INTEGER PRIMARY KEY,
    thread   INTEGER NOT NULL,
    version  INTEGER NOT NULL,
    id       BLOB NOT NULL,
    body     BLOB
) STRICT;

-- The tables from here on are derived. `digest` is the checksum of `record`, which holds the displayed values.
CREATE TABLE thread (
    number  INTEGER PRIMARY KEY,
    key     BLOB NOT NULL UNIQUE,
    project BLOB NOT NULL,
    title   TEXT NOT NULL,
    record  BLOB NOT NULL,
    digest  INTEGER NOT NULL
) STRICT;

CREATE TABLE take (
    key    BLOB NOT NULL,
    thread INTEGER NOT NULL,
    name   TEXT NOT NULL,
    record BLOB NOT NULL,
    digest INTEGER NOT NULL,
    PRIMARY KEY (key, thread)
) STRICT, WITHOUT ROWID;

-- Values by which threads can be found: tag, branch, commit, directory.
CREATE TABLE facet (
    kind   INTEGER NOT NULL,
    value  TEXT NOT NULL,
    thread INTEGER NOT NULL,
    PRIMARY KEY (kind, value, thread)
) STRICT, WITHOUT ROWID;

-- Row checksums: for each indexed value the XOR of the hashes of all rows with that value, which detects rows that
-- damage hides from a lookup.
CREATE TABLE tally (
    kind   INTEGER NOT NULL,
    value  ANY NOT NULL,
    digest INTEGER NOT NULL,
    PRIMARY KEY (kind, value)
) STRICT, WITHOUT ROWID;

-- Neither derived nor history: projects (`digest` is the checksum of the row) and the display state of entries.
CREATE TABLE project (
    key       BLOB PRIMARY KEY,
    path      TEXT NOT NULL,
    device    INTEGER NOT NULL,
    inode     INTEGER NOT NULL,
    born      INTEGER,
    remote    TEXT,
    last_seen INTEGER NOT NULL,
    current   BLOB,                     -- the thread that commands mean when they name none
    digest    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE presentation (
    thread INTEGER NOT NULL,
    entry  BLOB NOT NULL,
    shown  INTEGER NOT NULL,
    PRIMARY KEY (thread, entry)
) STRICT, WITHOUT ROWID;

-- Folders with captured files, as last recorded. `digest` is the checksum of the record.
CREATE TABLE folder (
    key    BLOB PRIMARY KEY,
    record BLOB NOT NULL,
    digest INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Pending moves of files: at most one per folder and per thread.
CREATE TABLE intent (
    number INTEGER PRIMARY KEY,
    folder BLOB NOT NULL UNIQUE,
    thread BLOB NOT NULL UNIQUE,
    body   BLOB NOT NULL,
    digest INTEGER NOT NULL
) STRICT;

-- Files in packs/ with the bytes of blobs, `<number in hexadecimal>.pack`. A file without a row is garbage.
-- `born` is in seconds since 1970, `bytes` the size of the file, `raw` the unpacked size of its blobs.
CREATE TABLE pack (
    number INTEGER PRIMARY KEY, born INTEGER NOT NULL, bytes INTEGER NOT NULL, raw INTEGER NOT NULL
) STRICT;

-- Locates blobs in packs by the first eight bytes of their ids; can be rebuilt, like object_index.
-- `frame` is the offset of the frame in the file, `start` the offset of the blob in the unpacked frame.
CREATE TABLE packed (
    prefix INTEGER, pack INTEGER, frame INTEGER, start INTEGER, length INTEGER NOT NULL,
    PRIMARY KEY (prefix, pack, frame, start)
) STRICT, WITHOUT ROWID;

-- Frames with redacted content, which are to be overwritten.
CREATE TABLE doomed (
    pack INTEGER, frame INTEGER, length INTEGER NOT NULL, PRIMARY KEY (pack, frame)
) STRICT, WITHOUT ROWID;

-- Indexes come last, as in a database that was vacuumed: a salvage relies on the place of each table.
CREATE UNIQUE INDEX operation_version ON operation (thread, version);
CREATE INDEX thread_project ON thread (project);
CREATE INDEX thread_title ON thread (title);
CREATE UNIQUE INDEX take_name ON take (thread, name);
CREATE INDEX facet_thread ON facet (thread);
