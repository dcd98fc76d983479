//! Search as users see it: which entries match, and that the index always recovers.

mod concurrent;
mod erasure;
mod filters;
mod rebuilding;
mod texts;
mod words;
mod world;
