//! Tests of pure code, against simpler implementations and with adversarial input.

mod diff;
mod excluded;
mod list_costs;
mod list_hostile;
mod list_properties;
mod merge_oracle;
mod renames;
mod replay;
