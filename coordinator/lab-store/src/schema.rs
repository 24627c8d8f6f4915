//! The tables, in SQLite's words with the type JSON beside its own. Other engines get a translation.

use super::{
    database::{Database, DatabaseError, Postgres, Sqlite, Step},
    error::{Result, StoreError},
};

/// The version of [`SCHEMA`], which a change of it raises. Nothing was released with an older one, so there are no migrations yet.
const VERSION: i64 = 4;
const SCHEMA: &str = "
CREATE TABLE devices (
    id          TEXT PRIMARY KEY,  -- fingerprint of the public key
    name        TEXT NOT NULL,  -- a label
    public_key  BLOB NOT NULL,  -- Ed25519, 32 bytes
    agent       TEXT NOT NULL,  -- version of the agent
    engines     TEXT NOT NULL,  -- JSON list
    facts       TEXT NOT NULL,  -- JSON, as the device sent it
    hellos      INTEGER NOT NULL,  -- counts the times that it said hello
    first_seen  TEXT NOT NULL
) STRICT;

-- What each heartbeat changes, apart from the long facts of a device, so that a heartbeat writes a short row.
CREATE TABLE presence (
    device                TEXT PRIMARY KEY,
    online                INTEGER NOT NULL,
    last_seen             TEXT NOT NULL,
    running               TEXT,  -- the run in whose timed window it was with its last sign of life
    duplicated            INTEGER NOT NULL DEFAULT 0,  -- whether two agents use its identity
    hottest_millicelsius  INTEGER,  -- of its last heartbeat
    milliwatts            INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
    id             TEXT PRIMARY KEY,  -- UUIDv7: sorts by time of asking
    device         TEXT NOT NULL,
    benchmark      TEXT NOT NULL,
    scenario       TEXT NOT NULL,
    mode           TEXT NOT NULL,
    engine         TEXT NOT NULL,
    created        TEXT NOT NULL,
    draft          JSON NOT NULL,  -- what was asked for, before rates are estimated
    spec_sha256    TEXT,  -- of spec.json, once it is final and may be sent
    known          INTEGER NOT NULL DEFAULT 0,  -- whether the device has told a state of it
    phase          TEXT NOT NULL,
    reason         TEXT,
    revision       INTEGER NOT NULL,
    abort          TEXT,  -- why somebody wants it ended
    stop_server    INTEGER NOT NULL DEFAULT 0,  -- whether its device must stop the model server
    lost           INTEGER NOT NULL DEFAULT 0,  -- the device no longer has it
    recorded       TEXT,  -- when record.json was written
    forgotten      INTEGER NOT NULL DEFAULT 0,  -- whether the device has been told that it may forget it
    outcome        JSON,  -- the figures of the record and of LoadGen's summary
    recorded_at    INTEGER NOT NULL DEFAULT 0,  -- the same in seconds of service, which no clock moves
    released       INTEGER NOT NULL DEFAULT 0,  -- whether the device has been told that it may remove it
    abandoned      TEXT,  -- why a user no longer waits for its files
    started        TEXT,  -- when the coordinator first heard that LoadGen runs
    pending_abort  TEXT,  -- why its device must still abort it, although a user gave it up
    spent_ms       INTEGER NOT NULL DEFAULT 0,  -- how long its device has had a run with a limit, which no clock moves
    note           TEXT  -- of a user
) STRICT;
CREATE INDEX runs_by_device ON runs (device, recorded, id);
CREATE INDEX runs_without_record ON runs (id, device) WHERE recorded IS NULL;
CREATE INDEX runs_to_abort ON runs (device, id) WHERE pending_abort IS NOT NULL;

CREATE TABLE streams (
    run            TEXT NOT NULL REFERENCES runs (id),
    name           TEXT NOT NULL,
    listed         INTEGER NOT NULL DEFAULT 0,  -- whether the device counts it among the run's files
    committed      INTEGER NOT NULL DEFAULT 0,  -- every byte before this is on disk
    stated_length  INTEGER,
    stated_sha256  TEXT,
    complete       INTEGER NOT NULL DEFAULT 0,  -- complete, with the stated SHA-256
    PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
    secret_sha256  TEXT PRIMARY KEY,  -- the secret itself is nowhere on this disk
    name           TEXT NOT NULL,  -- of the device that it is for
    created        TEXT NOT NULL,
    expires        TEXT NOT NULL,
    device         TEXT  -- who has used it
) STRICT;

CREATE TABLE members (
    device      TEXT PRIMARY KEY,  -- fingerprint of the public key
    name        TEXT NOT NULL,
    public_key  BLOB NOT NULL,  -- Ed25519, 32 bytes
    enrolled    TEXT NOT NULL,
    not_after   TEXT NOT NULL,  -- end of its newest certificate
    removed     TEXT  -- a removed key never comes back
) STRICT;
-- Counts members without reading their keys.
CREATE INDEX members_by_removal ON members (removed);

CREATE TABLE certificates (
    serial  BLOB PRIMARY KEY,
    device  TEXT NOT NULL
) STRICT;

CREATE TABLE numbers (
    name   TEXT PRIMARY KEY,
    value  INTEGER NOT NULL  -- only grows
) STRICT;

CREATE TABLE other_versions (
    device     TEXT PRIMARY KEY,  -- by its topic: its hello cannot be read
    wire       INTEGER NOT NULL,  -- the wire version that it speaks
    last_seen  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE examinations (
    id            TEXT PRIMARY KEY,  -- of the question
    device        TEXT NOT NULL,
    requested_at  TEXT NOT NULL,
    json          TEXT,  -- what the device found, for programs
    text          TEXT,  -- and for people
    refused       TEXT,  -- why it did not look
    acknowledged  INTEGER NOT NULL DEFAULT 0  -- whether a device that refused may forget the question
) STRICT, WITHOUT ROWID;

CREATE TABLE assets (
    path    TEXT PRIMARY KEY,  -- below the scratch directory
    kind    TEXT NOT NULL,  -- file or tree
    sha256  TEXT NOT NULL,  -- of the file, or of the tree's manifest
    bytes   INTEGER NOT NULL,
    files   INTEGER NOT NULL,
    added   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE removed_runs (
    run      TEXT PRIMARY KEY,  -- removed here, and perhaps still on its device
    device   TEXT NOT NULL,
    sent     INTEGER NOT NULL,  -- whether the device has been told to forget it
    release  INTEGER NOT NULL DEFAULT 1  -- whether all its files were here, signed
) STRICT, WITHOUT ROWID;

CREATE TABLE staged_runs (
    run     TEXT NOT NULL,
    tree    TEXT NOT NULL,  -- the submission tree, an absolute path
    staged  TEXT NOT NULL,
    PRIMARY KEY (run, tree)
) STRICT, WITHOUT ROWID;

CREATE TABLE service (
    name   TEXT PRIMARY KEY,  -- what a serving coordinator reports about itself
    value  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE meters (
    name      TEXT PRIMARY KEY,
    settings  TEXT NOT NULL,  -- JSON: where it is, and what the official programs need
    added     TEXT NOT NULL,
    session   TEXT,  -- the power session that has it
    since     TEXT,
    holder    TEXT,  -- JSON: the process of that session
    device    TEXT  -- the device that the session measures; it takes no other work
) STRICT;

CREATE TABLE power_sessions (
    id           TEXT PRIMARY KEY,  -- UUIDv7: sorts by time
    meter        TEXT NOT NULL,
    device       TEXT NOT NULL,
    benchmark    TEXT NOT NULL,
    scenario     TEXT NOT NULL,
    begun        TEXT NOT NULL,
    ended        TEXT,
    ranging      TEXT,  -- the runs, once they were requested
    testing      TEXT,
    verdict      TEXT,  -- pass, fail or rehearsal of a complete session
    reason       TEXT,  -- why it is not complete
    cause        TEXT,  -- whose failure that is
    simulated    INTEGER,  -- whether PTDaemon was a simulated one; NULL when it did not say what it is
    obstacles    TEXT NOT NULL DEFAULT '[]',  -- JSON list: why its runs cannot be submitted
    step         TEXT,  -- the newest step, in words
    watts        REAL,  -- the newest mean of ten seconds
    observation  TEXT,  -- the newest observation beside it, such as a clock's step
    mean_watts   REAL  -- the meter's mean in the testing run's window, once the session is complete
) STRICT;

CREATE TABLE logins (
    device       TEXT PRIMARY KEY,
    destination  TEXT NOT NULL  -- user@host[:port] of its newest deployment over SSH
) STRICT, WITHOUT ROWID;

CREATE TABLE device_labels (
    device  TEXT NOT NULL,
    label   TEXT NOT NULL,
    PRIMARY KEY (device, label)
) STRICT, WITHOUT ROWID;

CREATE TABLE campaigns (
    name          TEXT PRIMARY KEY,
    plan          TEXT NOT NULL,  -- the file's text
    plan_sha256   TEXT NOT NULL,
    seed          INTEGER NOT NULL,
    retries       INTEGER NOT NULL,  -- further attempts after causes of a device or of the infrastructure
    rate_retries  INTEGER NOT NULL,  -- further attempts at a measured rate
    lose_after_s  INTEGER NOT NULL,  -- absence after which a device counts as lost
    deadline      TEXT,  -- no attempt begins after it
    state         TEXT NOT NULL,  -- running, paused or aborted
    started       TEXT NOT NULL,
    ended         TEXT,
    revision      INTEGER NOT NULL DEFAULT 0  -- counts the changes of its cells and attempts
) STRICT;

CREATE TABLE combinations (
    campaign   TEXT NOT NULL REFERENCES campaigns (name),
    number     INTEGER NOT NULL,
    request    TEXT NOT NULL,  -- JSON: RunRequest
    variant    TEXT,  -- name of the settings' variant
    placement  TEXT NOT NULL,  -- any, each or same
    priority   INTEGER NOT NULL,
    devices    TEXT NOT NULL,  -- JSON list of ids
    audit      TEXT,  -- compliance test of an audit's cells
    meter      TEXT,  -- of cells that are power sessions
    PRIMARY KEY (campaign, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE cells (
    campaign             TEXT NOT NULL REFERENCES campaigns (name),
    number               INTEGER NOT NULL,
    combination          INTEGER NOT NULL,
    repetition           INTEGER NOT NULL,  -- from 1
    device               TEXT,  -- the only device that may take it
    position             INTEGER NOT NULL,  -- in the order that the seed fixes
    state                TEXT NOT NULL,  -- waiting, good, failed or skipped
    cause                TEXT,  -- of a failed cell
    reason               TEXT,
    counted_from         INTEGER NOT NULL DEFAULT 0,  -- number of the last attempt before a user requested more
    revision             INTEGER NOT NULL DEFAULT 0,  -- of the campaign, when the cell or its attempts last changed
    audited_performance  INTEGER,  -- of an audit: the cells whose runs it audits
    audited_accuracy     INTEGER,
    PRIMARY KEY (campaign, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX cells_by_state ON cells (campaign, state);
CREATE INDEX cells_by_revision ON cells (campaign, revision);
CREATE INDEX audit_cells ON cells (campaign, state) WHERE audited_performance IS NOT NULL;

CREATE TABLE attempts (
    campaign   TEXT NOT NULL,
    cell       INTEGER NOT NULL,
    number     INTEGER NOT NULL,  -- from 1
    device     TEXT NOT NULL,
    run        TEXT UNIQUE,  -- NULL when none could be requested
    requested  TEXT NOT NULL,
    ended      TEXT,
    cause      TEXT,  -- of a failed attempt; of an open one, why it is being ended
    reason     TEXT,
    session    TEXT,  -- power session of the attempt; the run is then its testing run
    PRIMARY KEY (campaign, cell, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX one_open_attempt_of_a_cell ON attempts (campaign, cell) WHERE ended IS NULL;
CREATE UNIQUE INDEX one_open_attempt_on_a_device ON attempts (device) WHERE ended IS NULL;

CREATE TABLE device_health (
    device          TEXT PRIMARY KEY,
    verdict         TEXT NOT NULL,  -- good, suspect or quarantined
    cause           TEXT,  -- why it is not good
    since           TEXT,
    judged_by       TEXT,  -- coordinator, or a user
    failures        INTEGER NOT NULL,  -- in a row, caused by the device
    needs_operator  INTEGER NOT NULL,  -- whether no check clears it
    drained         TEXT,  -- since when it is in maintenance
    drained_by      TEXT,
    drain_note      TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE device_log (
    number      INTEGER PRIMARY KEY,
    device      TEXT NOT NULL,
    at          TEXT NOT NULL,
    change      TEXT NOT NULL,
    health      TEXT NOT NULL,  -- after the change
    reason      TEXT,
    changed_by  TEXT NOT NULL,
    run         TEXT
) STRICT;
CREATE INDEX device_log_by_device ON device_log (device, run);

CREATE TABLE device_checks (
    number              INTEGER PRIMARY KEY,
    device              TEXT NOT NULL,
    at                  TEXT NOT NULL,
    benchmark           TEXT NOT NULL,
    engine              TEXT NOT NULL,
    accuracy_run        TEXT NOT NULL,
    performance_run     TEXT NOT NULL,
    accuracy            REAL,  -- in percent
    samples_per_second  REAL,
    failure             TEXT,  -- why it failed
    checked_by          TEXT NOT NULL
) STRICT;

CREATE TABLE page_tokens (
    number         INTEGER PRIMARY KEY,
    name           TEXT NOT NULL,  -- of the person or program that has it
    role           TEXT NOT NULL,  -- reader or operator
    secret_sha256  BLOB NOT NULL UNIQUE,  -- the secret itself is nowhere on this disk
    created        TEXT NOT NULL,
    expires        TEXT NOT NULL,
    last_used      TEXT,  -- in whole hours
    revoked        TEXT
) STRICT;
CREATE UNIQUE INDEX one_token_of_a_name ON page_tokens (name) WHERE revoked IS NULL;

CREATE TABLE campaign_log (
    number      INTEGER PRIMARY KEY,
    campaign    TEXT NOT NULL,
    at          TEXT NOT NULL,
    change      TEXT NOT NULL,  -- paused, resumed, aborted, retried, or a deadline
    cause       TEXT,  -- of the cells that are tried again
    changed_by  TEXT NOT NULL,
    deadline    TEXT  -- a moved one
) STRICT;
CREATE INDEX campaign_log_by_campaign ON campaign_log (campaign);

CREATE TABLE campaign_software (
    campaign  TEXT NOT NULL,
    device    TEXT NOT NULL,
    software  TEXT,  -- as its last hello before the campaign had it, as JSON; NULL if it had none
    PRIMARY KEY (campaign, device)
) STRICT, WITHOUT ROWID;

CREATE TABLE rollouts (
    number    INTEGER PRIMARY KEY,
    packages  TEXT NOT NULL,  -- JSON list of SHA-256
    options   TEXT NOT NULL,  -- JSON: for a command that continues it
    begun     TEXT NOT NULL,
    outcome   TEXT  -- NULL while it is under way, and when its command ended in the middle
) STRICT;

CREATE TABLE rollout_devices (
    rollout   INTEGER NOT NULL,
    device    TEXT NOT NULL,
    position  INTEGER NOT NULL,
    wave      INTEGER NOT NULL,  -- from 1
    PRIMARY KEY (rollout, device)
) STRICT, WITHOUT ROWID;

CREATE TABLE rollout_attempts (
    rollout  INTEGER NOT NULL,
    device   TEXT NOT NULL,
    number   INTEGER NOT NULL,  -- from 1
    begun    TEXT NOT NULL,
    ended    TEXT,
    cause    TEXT,  -- of a failed attempt
    reason   TEXT,
    agent    TEXT,  -- with which the device connected
    PRIMARY KEY (rollout, device, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE heard_sessions (
    device    TEXT NOT NULL,
    session   INTEGER NOT NULL,  -- the random number that a start of its agent drew
    newest    INTEGER NOT NULL,  -- number of the newest inventory of that start
    position  INTEGER NOT NULL,  -- grows with each change from one session to another
    PRIMARY KEY (device, session)
) STRICT, WITHOUT ROWID;

CREATE TABLE unknown_runs (
    device  TEXT NOT NULL,
    run     TEXT NOT NULL,
    PRIMARY KEY (device, run)
) STRICT, WITHOUT ROWID;
";

/// The tables whose rows nobody may change or delete.
const APPEND_ONLY: [&str; 2] = ["device_log", "campaign_log"];

/// Creates the tables in a new SQLite database. Its `user_version` is the version of the schema.
///
/// # Errors
/// Returns an error when the database has another version of the schema.
pub(super) fn create_in_file(database: &Sqlite) -> Result<()> {
    create(
        database,
        || database.schema_version(),
        || {
            database.batch(&SCHEMA.replace(" JSON", " TEXT"))?;
            for table in APPEND_ONLY {
                for change in ["UPDATE", "DELETE"] {
                    database.batch(&format!(
                        "CREATE TRIGGER {table}_has_no_{change} BEFORE {change} ON {table}
                         BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
                    ))?;
                }
            }
            database.set_schema_version(VERSION)
        },
    )
}

/// Creates the tables in a new database of PostgreSQL.
///
/// # Errors
/// Returns an error when the database has another version of the schema.
pub(super) fn create_on_server(database: &Postgres) -> Result<()> {
    create(
        database,
        || database.schema_version(),
        || {
            // SQLite has this function.
            database.batch(
                "CREATE FUNCTION instr(place text, part text) RETURNS bigint IMMUTABLE LANGUAGE sql
                 AS 'SELECT strpos(place, part)::bigint'",
            )?;
            database.batch(&translated_schema())?;
            database.batch(
                "CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql
                 AS 'BEGIN RAISE EXCEPTION ''% is append-only'', TG_TABLE_NAME; END'",
            )?;
            for table in APPEND_ONLY {
                database.batch(&format!(
                "CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON {table} EXECUTE FUNCTION append_only()"
            ))?;
            }
            database.batch(&format!(
            "CREATE TABLE schema_version (version bigint NOT NULL); INSERT INTO schema_version VALUES ({VERSION})"
        ))
        },
    )
}

/// A table with its columns.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Table<'a> {
    pub(super) name: &'a str,
    pub(super) columns: Vec<&'a str>,
}

/// Returns the tables, those that others refer to first.
pub(super) fn tables() -> Vec<Table<'static>> {
    let definitions = SCHEMA.split("CREATE TABLE ").skip(1);
    let table = |definition: &'static str| {
        let (name, columns) = definition.split_once(" (\n")?;
        let columns = columns.lines().take_while(|line| !line.starts_with(')'));
        let columns = columns.filter_map(|line| line.split_whitespace().next());
        Some(Table {
            name,
            columns: columns.filter(|word| *word != "PRIMARY").collect(),
        })
    };
    definitions.filter_map(table).collect()
}

fn create(
    database: &dyn Database,
    version: impl Fn() -> Result<i64, DatabaseError>,
    fill: impl FnOnce() -> Result<(), DatabaseError>,
) -> Result<()> {
    if version()? == VERSION {
        return Ok(());
    }
    database.transact(Step::Begin)?;
    // Read again under the lock, because another process may have created them meanwhile.
    let created = match version() {
        Ok(VERSION) => Ok(()),
        Ok(0) => fill().map_err(StoreError::from),
        Ok(found) => Err(StoreError::OtherVersion {
            found,
            known: VERSION,
        }),
        Err(error) => Err(error.into()),
    };
    match created {
        Ok(()) => Ok(database.transact(Step::Commit)?),
        Err(error) => {
            // The first error counts.
            let _ = database.transact(Step::Rollback);
            Err(error)
        }
    }
}

/// Returns the schema in PostgreSQL's words.
fn translated_schema() -> String {
    SCHEMA
        // The order of bytes, as in SQLite, and not that of the server's language.
        .replace(" TEXT", " text COLLATE \"C\"")
        .replace(
            "INTEGER PRIMARY KEY",
            "bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
        )
        .replace(" INTEGER", " bigint")
        .replace(" BLOB", " bytea")
        .replace(" REAL", " double precision")
        .replace(") STRICT, WITHOUT ROWID;", ");")
        .replace(") STRICT;", ");")
}
