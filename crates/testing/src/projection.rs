//! Random histories and their projection onto all wires.

pub mod campaign;
#[cfg(test)]
mod remembered;
pub mod sample;
#[cfg(test)]
mod tests;
