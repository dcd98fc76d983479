//! Files in the store: snapshots with their content in packs, folders, and pending moves of files.

mod damage;
mod erasing;
mod keeping;
mod mending;
mod world;
