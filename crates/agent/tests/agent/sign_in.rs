//! Sign-in to cloud providers. The servers check it independently of the signing code, with public keys and
//! published algorithms.

mod azure;
#[cfg(feature = "bedrock")]
mod bedrock;
#[cfg(feature = "vertex")]
mod vertex;

use std::collections::BTreeMap;
use std::path::Path;

use retake_agent::Cancel;
use retake_agent::provider::config::{
    KeyFileError, ProviderEnvironment, ResolvedProvider, resolve, run_key_command,
};
use retake_agent::provider::{Answer, CallError, Client, Endpoint};
use serde_json::{Value, json};

/// The endpoint for a configuration and an environment.
fn endpoint(
    name: &str,
    model: &str,
    config: &Value,
    environment: &[(&str, &str)],
) -> Result<Box<Endpoint>, String> {
    let providers = BTreeMap::from([(
        name.to_owned(),
        serde_json::from_value(config.clone()).expect("a configuration of a provider"),
    )]);
    let variable = |wanted: &str| {
        environment.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned())
    };
    let around = ProviderEnvironment {
        variable: &variable,
        key_file: &|path: &Path| Err(KeyFileError::Open { path: path.to_owned() }),
        key_command: &run_key_command,
        stored_key: &|_| Ok(None),
        stored_names: &Vec::new,
    };
    match resolve(name, Some(model), &providers, &around) {
        Ok(ResolvedProvider::Remote(endpoint)) => Ok(endpoint),
        Ok(ResolvedProvider::Offline) => Err("offline".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn call(endpoint: &Endpoint) -> Result<Answer, CallError> {
    let body = json!({"model": endpoint.model, "max_tokens": 5, "stream": true, "messages": []});
    Client::new().expect("a client").call(endpoint, &body.clone().into(), &Cancel::new(), &mut |_| {})
}

fn text(answer: &Answer) -> String {
    answer.blocks.iter().filter_map(|block| block.text()).collect()
}
