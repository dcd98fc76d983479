//! Search as a user meets it: what is found, what is not, and that the index always comes back.

mod erasing;
mod filters;
mod mending;
mod texts;
mod together;
mod words;
mod world;
