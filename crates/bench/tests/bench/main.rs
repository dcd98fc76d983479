//! The benchmark runs, and its hot paths stay within their instructions.

mod instructions;
mod quick;
