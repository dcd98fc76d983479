//! The timeline as its users meet it.

mod apart;
mod attribution;
mod clocks;
mod complaints;
mod differ;
mod drafts;
mod entries;
mod exchange;
mod files;
mod following;
mod forged;
mod history;
mod inherited;
mod old_logs;
mod overlapping;
mod plans;
mod power_cut;
mod privacy;
mod projects;
mod redo_files;
mod requests;
mod restore;
mod shared;
mod support;
mod takes;
mod undo_by_take;
