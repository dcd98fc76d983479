//! Files in the store: snapshots with their content in packs, folders, and moves of files that have begun.

mod damage;
mod erasing;
mod keeping;
mod mending;
mod world;
