//! Operations: publishing them, reading them, following them.

pub(crate) mod head;
pub(crate) mod high_water_mark;
pub(crate) mod operations;
pub(crate) mod publish;
pub(crate) mod queries;
pub(crate) mod read_transaction;
pub(crate) mod replace;
pub(crate) mod tail;
pub(crate) mod writer;
