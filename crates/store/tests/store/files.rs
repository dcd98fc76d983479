//! Files in the store: snapshots with their content in packs, folders, and pending moves of files.

mod damage;
mod erasure;
mod repairing;
mod retention;
mod world;
