//! Lists and searches, from columns beside the record.
//!
//! ```text
//!   facet (space, kind, value) ──► threads     words of title and text, tags, repositories, branches, commits, directories
//! ```
//!
//! A word of a query is the beginning of a word of the text, so that one range of the index answers it on both engines.
//! Deep search stays on the devices, which have all text.

use std::collections::BTreeSet;

use retake_sync::remote::ProjectKey;
use retake_sync::wire::{ProblemCode, SearchQuery, TEXT_BYTES, ThreadList, ThreadRow, ThreadSummary};

use crate::access::AuthorizedSpace;
use crate::database::{Connection, DatabaseError, Row, Value};
use crate::error::HubError;
use crate::threads::{bundle_row, read_summary};
use crate::values;

/// The most values of one kind that a thread is found by.
const MOST_VALUES: usize = 200;
/// The most words.
const MOST_WORDS: usize = 600;
/// The longest value, in bytes.
const LONGEST: usize = 200;
/// The most words of a query.
const MOST_QUERY_WORDS: usize = 8;
const PAGE: u64 = 100;

/// Replaces what a thread is found by.
pub(crate) fn index(
    connection: &mut dyn Connection,
    space: &str,
    thread: &str,
    summary: &ThreadSummary,
) -> Result<(), DatabaseError> {
    let wanted = facets(summary);
    let sql = "SELECT kind, value FROM facet WHERE space = $1 AND thread = $2";
    let rows = connection.query(sql, values![space, thread])?;
    let mut found = BTreeSet::new();
    for row in &rows {
        found.insert((row.text(0)?.to_owned(), row.bytes(1)?.to_vec()));
    }
    for (kind, value) in found.iter().filter(|(kind, value)| !contains(&wanted, kind, value)) {
        let sql = "DELETE FROM facet WHERE space = $1 AND kind = $2 AND value = $3 AND thread = $4";
        connection.execute(sql, values![space, kind, value.as_slice(), thread])?;
    }
    for (kind, value) in &wanted {
        if !found.contains(&((*kind).to_owned(), value.clone())) {
            let sql = "INSERT INTO facet (space, kind, value, thread) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
            connection.execute(sql, values![space, *kind, value.as_slice(), thread])?;
        }
    }
    Ok(())
}

fn contains(wanted: &BTreeSet<(&'static str, Vec<u8>)>, kind: &str, value: &[u8]) -> bool {
    wanted.iter().any(|(other, found)| *other == kind && found == value)
}

fn facets(summary: &ThreadSummary) -> BTreeSet<(&'static str, Vec<u8>)> {
    let details = &summary.details;
    let mut facets = BTreeSet::new();
    let title = words(&summary.title);
    facets.extend(title.iter().map(|word| ("title", word.clone().into_bytes())));
    let text = details.text.get(..details.text.floor_char_boundary(TEXT_BYTES)).unwrap_or_default();
    facets.extend(title.into_iter().chain(words(text)).map(|word| ("word", word.into_bytes())));
    let exact: [(&'static str, &[String]); 4] = [
        ("tag", &details.tags),
        ("branch", &details.branches),
        ("commit", &details.commits),
        ("directory", &details.directories),
    ];
    for (kind, values) in exact {
        facets.extend(values.iter().take(MOST_VALUES).map(|value| (kind, normalized(value))));
    }
    if let Some(remote) = &summary.project.git_remote {
        // `github.com/a/b` is found as itself, as `a/b` and as `b`.
        let remote = remote.trim_end_matches('/').trim_end_matches(".git").to_lowercase();
        let starts = remote.match_indices(['/', ':']).map(|(at, _)| at + 1).chain([0]);
        facets.extend(starts.map(|start| ("repository", normalized(&remote[start..]))));
    }
    facets
}

fn normalized(value: &str) -> Vec<u8> {
    let value = value.trim().to_lowercase();
    value.as_bytes()[..value.floor_char_boundary(LONGEST)].to_vec()
}

/// The words of a text, in small letters.
fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let words = words.filter(|word| word.len() > 1).map(str::to_lowercase);
    words
        .filter(|word| word.len() <= LONGEST)
        .take(MOST_WORDS * 4)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .take(MOST_WORDS)
        .collect()
}

/// The key of a project, as it is stored.
pub(crate) fn project_text(project: &ProjectKey) -> String {
    serde_json::to_string(project).unwrap_or_default()
}

/// A query with its parameters.
struct Conditions {
    sql: String,
    values: Vec<Value>,
}

#[derive(Clone, Copy, PartialEq)]
enum Match {
    Exact,
    Prefix,
}

impl Conditions {
    fn bind(&mut self, value: impl Into<Value>) -> String {
        self.values.push(value.into());
        format!("${}", self.values.len())
    }

    fn and(&mut self, condition: &str) {
        self.sql.push_str(" AND ");
        self.sql.push_str(condition);
    }

    fn compare<T: Into<Value>>(&mut self, left: &str, right: Option<T>) {
        let Some(right) = right else { return };
        let right = self.bind(right);
        self.and(&format!("{left} {right}"));
    }

    fn facet(&mut self, kind: &'static str, value: Vec<u8>, matching: Match) {
        let kind = self.bind(kind);
        let condition = match matching {
            Match::Exact => format!("value = {}", self.bind(value)),
            Match::Prefix => {
                // No text in UTF-8 contains this byte.
                let end = [value.as_slice(), &[0xff]].concat();
                format!("value >= {} AND value < {}", self.bind(value), self.bind(end))
            }
        };
        self.and(&format!(
            "t.id IN (SELECT thread FROM facet WHERE space = $1 AND kind = {kind} AND {condition})"
        ));
    }
}

/// Which threads of a space match, the one that changed last first.
pub fn search(
    connection: &mut dyn Connection,
    space: &AuthorizedSpace,
    query: &SearchQuery,
) -> Result<ThreadList, HubError> {
    let limit = query.limit.unwrap_or(PAGE).clamp(1, PAGE);
    let Conditions { sql, values } = conditions(space, query, limit)?;
    let rows = connection.query(&sql, &values)?;
    let mut threads = Vec::new();
    let mut next = None;
    for (at, row) in rows.iter().enumerate() {
        if at as u64 == limit {
            let last: &Row = &rows[at - 1];
            next = Some(format!("{}.{}", last.int(5)?, last.text(0)?));
            break;
        }
        threads.push(thread_row(row)?);
    }
    Ok(ThreadList { threads, next })
}

fn conditions(space: &AuthorizedSpace, query: &SearchQuery, limit: u64) -> Result<Conditions, HubError> {
    let sql = "SELECT t.id, a.name, t.bytes, t.deleted, t.summary, t.updated,
                      b.number, b.first, b.last, b.head, b.id, b.bytes
               FROM thread t JOIN account a ON a.id = t.owner
               JOIN bundle b ON b.space = t.space AND b.thread = t.id AND b.number = t.number WHERE t.space = $1 AND t.purged IS NULL";
    let mut conditions = Conditions { sql: sql.to_owned(), values: vec![space.id().into()] };
    if query.deleted != Some(true) {
        conditions.and("t.deleted IS NULL");
    }
    for (kind, text) in [("word", &query.text), ("title", &query.title)] {
        let Some(text) = text else { continue };
        let words = words(text);
        if words.is_empty() || words.len() > MOST_QUERY_WORDS {
            let message = format!("a search has 1 to {MOST_QUERY_WORDS} words of two letters or more");
            return Err(HubError::new(ProblemCode::Invalid, message));
        }
        for word in words {
            conditions.facet(kind, word.into_bytes(), Match::Prefix);
        }
    }
    for (kind, value, matching) in [
        ("tag", &query.tag, Match::Exact),
        ("repository", &query.repository, Match::Exact),
        ("branch", &query.branch, Match::Exact),
        ("directory", &query.directory, Match::Exact),
        ("commit", &query.commit, Match::Prefix),
    ] {
        if let Some(value) = value {
            conditions.facet(kind, normalized(value.trim_end_matches(".git")), matching);
        }
    }
    conditions.compare("a.name =", query.person.as_ref());
    conditions.compare("t.agent_state =", query.agent_state.as_ref());
    conditions.compare("t.messages >=", query.min_messages);
    conditions.compare("t.messages <=", query.max_messages);
    if let Some(after) = &query.after {
        let (updated, id) = after.split_once('.').ok_or_else(|| HubError::invalid("`after`"))?;
        let updated: i64 = updated.parse().map_err(|_| HubError::invalid("`after`"))?;
        let (updated, id) = (conditions.bind(updated), conditions.bind(id));
        conditions.and(&format!("(t.updated < {updated} OR (t.updated = {updated} AND t.id > {id}))"));
    }
    let limit = conditions.bind(limit + 1);
    conditions.sql.push_str(" ORDER BY t.updated DESC, t.id LIMIT ");
    conditions.sql.push_str(&limit);
    Ok(conditions)
}

fn thread_row(row: &Row) -> Result<ThreadRow, DatabaseError> {
    Ok(ThreadRow {
        thread: row.text(0)?.parse().map_err(|_| DatabaseError::Shape)?,
        owner: row.text(1)?.to_owned(),
        bytes: row.count(2)?,
        deleted: row.optional_int(3)?,
        summary: read_summary(row.text(4)?),
        last: bundle_row(row, 6)?,
    })
}
