//! Random histories and their projection onto all wires.

pub mod campaign;
pub mod sample;
#[cfg(test)]
mod tests;
