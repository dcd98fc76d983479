//! Files in the store: snapshots with their content in packs, folders, and moves of files that have begun.

#[path = "files/damage.rs"]
mod damage;
#[path = "files/erasing.rs"]
mod erasing;
#[path = "files/keeping.rs"]
mod keeping;
#[path = "files/mending.rs"]
mod mending;
mod support;
#[path = "files/world.rs"]
mod world;
