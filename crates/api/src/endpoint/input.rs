//! Parses a request into the types of its route. Unknown fields are refused by name.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Call, IncomingRequest, RequestBody, query, strict};
use crate::problem::{Code, Problem};
use crate::service::Service;
use crate::upload::Upload;

/// A path without parameters.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NoPath {}

/// No query.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoQuery {}

pub(super) fn without_body<P, Q>(
    service: &Service,
    arrived: IncomingRequest,
) -> Result<Call<'_, P, Q>, Problem>
where
    P: DeserializeOwned,
    Q: DeserializeOwned,
{
    call(service, arrived, |_| Ok(()))
}

pub(super) fn with_json<P, Q, B>(
    service: &Service,
    arrived: IncomingRequest,
) -> Result<Call<'_, P, Q, B>, Problem>
where
    P: DeserializeOwned,
    Q: DeserializeOwned,
    B: DeserializeOwned,
{
    call(service, arrived, |content| {
        let RequestBody::Bytes(bytes) = content else {
            return Err(Problem::new(Code::Internal, "got a file instead of JSON"));
        };
        // An empty body counts as an object without fields.
        let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        strict::from_slice(bytes).map_err(|error| Problem::invalid(format!("invalid body: {error}")))
    })
}

pub(super) fn with_file<P, Q>(
    service: &Service,
    arrived: IncomingRequest,
) -> Result<Call<'_, P, Q, Upload>, Problem>
where
    P: DeserializeOwned,
    Q: DeserializeOwned,
{
    call(service, arrived, |content| match content {
        RequestBody::File(upload) => Ok(upload),
        RequestBody::Bytes(_) => Err(Problem::new(Code::Internal, "got JSON instead of a file")),
    })
}

fn call<P, Q, B>(
    service: &Service,
    arrived: IncomingRequest,
    body: impl FnOnce(RequestBody) -> Result<B, Problem>,
) -> Result<Call<'_, P, Q, B>, Problem>
where
    P: DeserializeOwned,
    Q: DeserializeOwned,
{
    let names = arrived.path.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let path = serde_urlencoded::to_string(names.collect::<Vec<_>>())
        .ok()
        .and_then(|text| serde_urlencoded::from_str(&text).ok())
        // Malformed ids return 404.
        .ok_or_else(|| {
            let named: Vec<&str> = arrived.path.iter().map(|(_, value)| value.as_str()).collect();
            Problem::not_found(format!("{:?} not found", named.join("/")))
        })?;
    let query = query::from_str(&arrived.query)
        .map_err(|error| Problem::invalid(format!("invalid query: {error}")))?;
    Ok(Call {
        service,
        who: arrived.who,
        path,
        query,
        body: body(arrived.body)?,
        expected: arrived.expected,
        request: arrived.request,
        made: arrived.made,
        last_event: arrived.last_event,
    })
}
