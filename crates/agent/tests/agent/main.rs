//! Complete turns against a scripted server.

mod compressing;
mod faults;
mod live_models;
mod many_calls;
mod messages;
mod noisy;
mod post_tools;
mod provider_compat;
mod provider_decode;
mod provider_http;
mod provider_roundtrip;
mod redaction;
mod retry;
#[cfg(feature = "schema")]
mod schemas;
mod sealed;
mod sign_in;
mod stops;
mod stored;
mod thoughts;
mod tools;
mod world;
