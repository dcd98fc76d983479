//! The models that providers currently offer, with a cache of the last lists.
//!
//! ```text
//!   Endpoint ─► GET …/models, in parallel ─► names ─► models.json beside the store ─► shown offline
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Url;
use retake_model::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::http::{Client, Fetch};
use super::{Endpoint, Platform, Wire};

/// Timeout for listing the models of a provider.
pub const WAIT: Duration = Duration::from_secs(15);

/// Maximum models stored per provider; the longest current list has a few hundred.
const MOST: usize = 2_000;

/// Maximum length of a model name.
const NAME_BYTES: usize = 200;

/// The models that a provider offers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveModels {
    /// When the list was fetched.
    pub fetched: Timestamp,
    /// Their names.
    pub models: Vec<String>,
}

/// A file with the last lists of all providers.
#[derive(Clone, Debug, Default)]
pub struct LiveCache {
    file: PathBuf,
    known: BTreeMap<String, LiveModels>,
}

impl LiveCache {
    /// Reads the cache beside a store. An unreadable cache is empty, because it can be fetched again.
    pub fn read(folder: &Path) -> Self {
        let file = folder.join("models.json");
        let text = std::fs::read(&file).unwrap_or_default();
        Self { known: serde_json::from_slice(&text).unwrap_or_default(), file }
    }

    /// The last list of a provider.
    pub fn get(&self, provider: &str) -> Option<&LiveModels> {
        self.known.get(provider)
    }

    /// Sets the list of a provider.
    pub fn set(&mut self, provider: &str, models: LiveModels) {
        self.known.insert(provider.to_owned(), models);
    }

    /// Writes the cache atomically. The store must exist, so that no other folder turns into one.
    pub fn write(&self) -> std::io::Result<()> {
        let text = serde_json::to_vec_pretty(&self.known)?;
        let temporary = self.file.with_extension(format!("json.{}", std::process::id()));
        let _ = std::fs::remove_file(&temporary);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        let written = file.write_all(&text).and_then(|()| std::fs::rename(&temporary, &self.file));
        if written.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        written
    }
}

/// Lists the models of providers in parallel. Results are in the order of the endpoints.
pub fn fetch(endpoints: &[Endpoint], wait: Duration) -> Vec<Result<Vec<String>, String>> {
    std::thread::scope(|scope| {
        let asked: Vec<_> =
            endpoints.iter().map(|endpoint| scope.spawn(move || fetch_one(endpoint, wait))).collect();
        let failed = || Err("the request failed".to_owned());
        asked.into_iter().map(|one| one.join().unwrap_or_else(|_| failed())).collect()
    })
}

fn fetch_one(endpoint: &Endpoint, wait: Duration) -> Result<Vec<String>, String> {
    let url = list_address(endpoint)?;
    let client = Client::new().map_err(|error| error.to_string())?;
    let text = client.fetch(endpoint, Fetch { url, wait }).map_err(|error| error.message)?;
    names(endpoint, &text).ok_or_else(|| format!("{}: the answer is not a list of models", endpoint.provider))
}

/// The address of a provider's list of models.
fn list_address(endpoint: &Endpoint) -> Result<Url, String> {
    let bad = || format!("the base_url of {} cannot be used", endpoint.provider);
    let mut url = Url::parse(endpoint.base_url.trim()).map_err(|_| bad())?;
    let mut path = vec!["models"];
    match (endpoint.platform, endpoint.wire) {
        (Platform::Azure, _) => {
            return Err("Azure lists deployments only in its portal; name one as the model".to_owned());
        }
        (Platform::Vertex, _) => {
            return Err("Vertex AI lists models only in its console; name one as the model".to_owned());
        }
        (Platform::Bedrock, _) => {
            // The runtime and management APIs have different hosts.
            let host = url.host_str().ok_or_else(bad)?.replacen("bedrock-runtime.", "bedrock.", 1);
            url.set_host(Some(&host)).map_err(|_| bad())?;
            url.query_pairs_mut().append_pair("maxResults", "1000");
            path = vec!["inference-profiles"];
        }
        (Platform::Direct, Wire::Anthropic) => {
            if !url.path().trim_end_matches('/').ends_with("/v1") {
                path.insert(0, "v1");
            }
            url.query_pairs_mut().append_pair("limit", "1000");
        }
        (Platform::Direct, Wire::Gemini) => _ = url.query_pairs_mut().append_pair("pageSize", "1000"),
        (Platform::Direct, Wire::Chat | Wire::Responses) => {}
    }
    url.path_segments_mut().map_err(|()| bad())?.pop_if_empty().extend(path);
    Ok(url)
}

/// Parses the names in a list of models.
fn names(endpoint: &Endpoint, text: &str) -> Option<Vec<String>> {
    let answer: Value = serde_json::from_str(text).ok()?;
    let (list, field) = match (endpoint.platform, endpoint.wire) {
        (Platform::Bedrock, _) => (answer.get("inferenceProfileSummaries")?, "inferenceProfileId"),
        (_, Wire::Gemini) => (answer.get("models")?, "name"),
        _ => (answer.get("data")?, "id"),
    };
    let answers = |model: &&Value| {
        let ways = model.get("supportedGenerationMethods").and_then(Value::as_array);
        let speaks = ways.is_none_or(|ways| ways.iter().any(|way| way == "generateContent"));
        speaks && (endpoint.platform != Platform::Bedrock || model.to_string().contains("anthropic."))
    };
    let name = |model: &Value| {
        let name = model.get(field)?.as_str()?;
        let name = name.strip_prefix("models/").unwrap_or(name);
        let good = !name.is_empty() && name.len() <= NAME_BYTES && !name.chars().any(char::is_control);
        good.then(|| name.to_owned())
    };
    let found: BTreeSet<String> =
        list.as_array()?.iter().filter(answers).filter_map(name).take(MOST).collect();
    Some(found.into_iter().collect())
}
