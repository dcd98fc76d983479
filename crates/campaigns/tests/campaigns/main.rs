//! A small part of every campaign, with its control.

mod api;
mod command_lines;
mod concurrent;
mod edits;
mod exchange;
mod faults;
mod files;
mod flips;
mod hostile;
mod hub;
mod model;
mod poison;
mod power_cuts;
mod processes;
mod projection;
mod promotion;
mod shim;
mod sync;
mod turns;
