//! Tests of the exchange of threads.

mod bucket;
mod bundles;
mod devices;
mod objects;
mod rounds;
