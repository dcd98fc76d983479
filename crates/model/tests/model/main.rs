//! The pure parts, against simpler ones that do the same and against what nobody would write.

mod diff;
mod list_costs;
mod list_hostile;
mod list_properties;
mod merge_oracle;
mod renames;
mod replay;
