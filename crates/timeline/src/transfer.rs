//! Export and import of threads, and exchange of operations with other machines.

pub(crate) mod adopt;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod replica;
