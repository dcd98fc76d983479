//! Pages of lists: sizes and cursors.

use std::str::FromStr;

use crate::{Code, Failure};

/// Maximum page size of most lists.
pub const MAX_PAGE: usize = 500;

/// Maximum page size of snapshots, which are compared with the previous ones.
pub const MAX_SNAPSHOTS: usize = 100;

/// Checks a page size.
pub fn limit(asked: Option<usize>, usual: usize, most: usize) -> Result<usize, Failure> {
    match asked {
        None => Ok(usual),
        Some(asked) if (1..=most).contains(&asked) => Ok(asked),
        Some(_) => Err(Failure::invalid(format!("limit must be from 1 to {most}"))),
    }
}

/// Parses a cursor: the last item of the previous page.
pub fn cursor<T: FromStr>(text: Option<&str>) -> Result<Option<T>, Failure> {
    text.map(str::parse).transpose().map_err(|_| invalid_cursor())
}

/// The error for a cursor of another list.
pub fn invalid_cursor() -> Failure {
    Failure::new(Code::Refused, "invalid cursor; use `next` of the previous page of this list")
}

/// Cuts a list that was read with one item more than the page has; returns whether there are further items.
pub fn cut<T>(items: &mut Vec<T>, limit: usize) -> bool {
    let more = items.len() > limit;
    items.truncate(limit);
    more
}
