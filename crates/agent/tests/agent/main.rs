//! Whole turns against a server that says what a test wants, and fails as a test wants.

mod compressing;
mod faults;
mod letters;
mod many_calls;
mod noisy;
mod provider_decode;
mod provider_http;
mod provider_roundtrip;
mod redaction;
mod retry;
#[cfg(feature = "schema")]
mod schemas;
mod sealed;
mod stored;
mod thoughts;
mod tools;
mod world;
