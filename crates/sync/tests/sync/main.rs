//! Tests of the exchange of threads.

mod bundles;
mod devices;
mod objects;
