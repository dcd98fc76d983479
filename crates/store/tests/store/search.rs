//! Search as users see it: which entries match, and that the index always recovers.

mod erasing;
mod filters;
mod mending;
mod texts;
mod together;
mod words;
mod world;
