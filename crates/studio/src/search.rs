//! Full-text search.

use maud::{Markup, html};
use retake_timeline::{FoundEntries, SearchIndex, SearchQuery};

use crate::draw::moment;
use crate::page_error::PageError;
use crate::studio::{PageQuery, Studio};

/// Maximum hits.
const MAX_HITS: usize = 30;

/// Matching entries with links.
pub(crate) fn draw(studio: &Studio, query: &PageQuery) -> Result<Markup, PageError> {
    let words = query.q.clone().unwrap_or_default();
    let reader = studio.timeline.read()?;
    let index = SearchIndex::open(studio.timeline.store().folder())?;
    let query = SearchQuery { words, limit: MAX_HITS, ..SearchQuery::default() };
    let found = FoundEntries::search(&reader, &index, &query, &mut |_, _| ())?;
    Ok(html! {
        div id="found" {
            h2 { "In conversations" }
            @if found.hits.is_empty() { p class="quiet" { "No results." } }
            ul {
                @for hit in &found.hits {
                    li {
                        a href=(format!("/studio/threads/{}?take={}&from={}#e-{}", hit.thread, hit.take, hit.number.saturating_sub(1), hit.entry)) {
                            span class="title" { (hit.title) }
                            span class="snippet" {
                                @for piece in &hit.snippet.pieces { @if piece.matched { mark { (piece.text) } } @else { (piece.text) } }
                            }
                            span class="facts" { (hit.role) " · " (moment(hit.time)) }
                        }
                    }
                }
            }
            @if found.more { p class="quiet" { "More results exist; refine your search." } }
        }
    })
}
