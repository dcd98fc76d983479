//! Tests of pure code, against simpler implementations and with adversarial input.

mod chunks;
mod diff;
mod excluded;
mod folders;
mod fork_costs;
mod list_costs;
mod list_hostile;
mod list_properties;
mod merge_oracle;
mod renames;
mod replay;
mod support;
