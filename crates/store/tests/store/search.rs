//! Search as a user meets it: what is found, what is not, and that the index always comes back.

#[path = "search/erasing.rs"]
mod erasing;
#[path = "search/filters.rs"]
mod filters;
#[path = "search/mending.rs"]
mod mending;
#[path = "search/texts.rs"]
mod texts;
#[path = "search/together.rs"]
mod together;
#[path = "search/words.rs"]
mod words;
#[path = "search/world.rs"]
mod world;
