//! The control: a change that no check inside the store can detect.

use std::path::Path;

use retake_model::summary::ThreadSummary;
use rusqlite::{Connection, params};

use super::build::copy;
use super::run::{Baseline, CAMPAIGN, Outcome};
use crate::scratch::ScratchDir;
use crate::violation::{BoxError, CampaignError, Violation};

/// Forges a title in the index with a valid digest: the comparison must report it.
pub fn forged(seed: u64) -> Result<(), CampaignError> {
    let scratch = ScratchDir::new().map_err(CampaignError::trouble)?;
    let baseline = Baseline::new(scratch.path(), seed)?;
    let place = copy(baseline.pristine()?, &scratch.path().join("forged"))?;
    forge(&place)?;
    match baseline.judge(&place, None) {
        Outcome::Silent(differences) if !differences.wrong.is_empty() => {
            let what = format!("a forged title: wrong {:?}", differences.wrong);
            Err(Violation { campaign: CAMPAIGN, seed, step: 0, what }.into())
        }
        _ => Ok(()),
    }
}

fn forge(store: &Path) -> Result<(), BoxError> {
    let connection = Connection::open(store.join("retake.db"))?;
    let (number, record, home): (i64, Vec<u8>, Vec<u8>) = connection.query_row(
        "SELECT number, record, project FROM thread ORDER BY number LIMIT 1",
        [],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let mut summary: ThreadSummary = minicbor::decode(&record)?;
    summary.title.push('!');
    let record = minicbor::to_vec(&summary)?;
    let mut guard = [0; 8];
    // The digest covers the shown fields and the listing project.
    guard.copy_from_slice(&blake3::hash(&[record.clone(), home].concat()).as_bytes()[..8]);
    connection.execute(
        "UPDATE thread SET title = ?1, record = ?2, digest = ?3 WHERE number = ?4",
        params![summary.title, record, i64::from_be_bytes(guard), number],
    )?;
    Ok(())
}
