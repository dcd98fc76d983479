-- Immutable content. Its name is the hash of its bytes and is not stored: reading checks it.
CREATE TABLE object (
    number  INTEGER PRIMARY KEY,
    kind    INTEGER NOT NULL,
    packing INTEGER NOT NULL,           -- 0 plain, 1 zstd
    born    INTEGER NOT NULL,           -- seconds since 1970: garbage is left alone for a while
    body    BLOB NOT NULL
) STRICT;

-- First eight bytes of the name, to the object.
CREATE TABLE object_index (
    prefix INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (prefix, number)
) STRICT, WITHOUT ROWID;

-- The same for objects that came lately, in the order in which they came: names fall anywhere in a sorted
-- index, and each would cost a page of its own. When they are many they move there all at once. The row with the
-- highest number always stays, so that no number is used twice.
CREATE TABLE object_recent (
    number INTEGER PRIMARY KEY,
    first  INTEGER NOT NULL,            -- the number of the first object; the others follow it
    names  BLOB NOT NULL                -- eight bytes of each name
) STRICT;

-- Content that was destroyed on purpose while its name lives on in the log.
CREATE TABLE redaction (
    id   BLOB PRIMARY KEY,
    kind INTEGER NOT NULL,
    time INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Content that a repair found gone: a loss that is known, where one that is not is a fault.
CREATE TABLE lost (
    id   BLOB PRIMARY KEY,
    kind INTEGER NOT NULL,
    time INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Rows that a repair took out of use, as they were found: nothing is thrown away because it is damaged.
-- Of an object, `prefix` is what the index called it; of an operation, `thread` says whose it was.
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

-- One row for every time that content was destroyed: what any process keeps in memory from before is void.
CREATE TABLE erasure (
    number INTEGER PRIMARY KEY
) STRICT;

-- The log of every thread, in the order in which it was written. A purged thread leaves one row without a
-- body, so that whoever follows the sequence learns of it and no number is ever used twice.
CREATE TABLE operation (
    sequence INTEGER PRIMARY KEY,
    thread   INTEGER NOT NULL,
    version  INTEGER NOT NULL,
    id       BLOB NOT NULL,
    body     BLOB
) STRICT;
CREATE UNIQUE INDEX operation_version ON operation (thread, version);

-- Derived from here on. `record` is what is shown, `digest` guards it.
CREATE TABLE thread (
    number  INTEGER PRIMARY KEY,
    key     BLOB NOT NULL UNIQUE,
    project BLOB NOT NULL,
    title   TEXT NOT NULL,
    record  BLOB NOT NULL,
    digest  INTEGER NOT NULL
) STRICT;
CREATE INDEX thread_project ON thread (project);
CREATE INDEX thread_title ON thread (title);

CREATE TABLE take (
    key    BLOB NOT NULL,
    thread INTEGER NOT NULL,
    name   TEXT NOT NULL,
    record BLOB NOT NULL,
    digest INTEGER NOT NULL,
    PRIMARY KEY (key, thread)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX take_name ON take (thread, name);

-- What a thread can be found by: tag, branch, commit, directory.
CREATE TABLE facet (
    kind   INTEGER NOT NULL,
    value  TEXT NOT NULL,
    thread INTEGER NOT NULL,
    PRIMARY KEY (kind, value, thread)
) STRICT, WITHOUT ROWID;
CREATE INDEX facet_thread ON facet (thread);

-- What searches should find: the hashes of all rows that have a value, folded into one. A row that damage hides
-- is missed by it.
CREATE TABLE tally (
    kind   INTEGER NOT NULL,
    value  ANY NOT NULL,
    digest INTEGER NOT NULL,
    PRIMARY KEY (kind, value)
) STRICT, WITHOUT ROWID;

-- Not derived, and not history: folders (`digest` guards each row), and how things are shown.
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

-- Folders that files are kept of: what each was when Retake last knew it. `digest` guards the record.
CREATE TABLE folder (
    key    BLOB PRIMARY KEY,
    record BLOB NOT NULL,
    digest INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Moves of files that have begun and not ended: at most one to a folder, and one to a thread.
CREATE TABLE intent (
    number INTEGER PRIMARY KEY,
    folder BLOB NOT NULL UNIQUE,
    thread BLOB NOT NULL UNIQUE,
    body   BLOB NOT NULL,
    digest INTEGER NOT NULL
) STRICT;

-- Files in packs/ that hold the bytes of blobs; `<number in hexadecimal>.pack`. One that no row names is garbage.
-- `born` in seconds since 1970; `bytes` is how long the file was made, `raw` how many bytes its blobs had then.
CREATE TABLE pack (
    number INTEGER PRIMARY KEY, born INTEGER NOT NULL, bytes INTEGER NOT NULL, raw INTEGER NOT NULL
) STRICT;

-- First eight bytes of a blob's name, to where its bytes are; like object_index, it can be made anew.
-- `frame` is where the frame begins in the file; `start` where the blob begins in the frame, unpacked.
CREATE TABLE packed (
    prefix INTEGER, pack INTEGER, frame INTEGER, start INTEGER, length INTEGER NOT NULL,
    PRIMARY KEY (prefix, pack, frame, start)
) STRICT, WITHOUT ROWID;

-- Frames that are to be overwritten because something in them was redacted.
CREATE TABLE doomed (
    pack INTEGER, frame INTEGER, length INTEGER NOT NULL, PRIMARY KEY (pack, frame)
) STRICT, WITHOUT ROWID;
