//! Lists providers and models, with what they lack.

use std::time::Duration;

use retake_model::time::Timestamp;
use serde::Serialize;

use super::Setup;
use crate::provider::Endpoint;
use crate::provider::config::{
    KeyStatus, ProviderEnvironment, ResolvedProvider, choose, key_status, models, resolve,
};
use crate::provider::known::{KNOWN_PROVIDERS, OFFLINE, known};
use crate::provider::live::{LiveCache, LiveModels, fetch};

/// Available providers and the default model.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Models {
    /// The default provider and model.
    pub default: DefaultModel,
    /// Built-in and configured providers.
    pub providers: Vec<ListedProvider>,
}

/// The default provider and model.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DefaultModel {
    /// Provider.
    pub provider: String,
    /// Model.
    pub model: Option<String>,
}

/// A provider and its status.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedProvider {
    /// Its name.
    pub name: String,
    /// Whether it is ready to use.
    pub ready: bool,
    /// Why it is not ready, such as a missing key.
    pub missing: Option<String>,
    /// Where its key is.
    pub key: KeyStatus,
    /// Models with a known price, and those of the configuration. Any other name can be given too.
    pub models: Vec<String>,
    /// The models that it offered when it was last asked; nothing if it never was.
    pub live: Option<LiveModels>,
    /// Why it did not list its models just now.
    pub refresh_error: Option<String>,
}

impl Setup {
    /// The default provider and model.
    pub fn default_model(&self, environment: &ProviderEnvironment<'_>) -> DefaultModel {
        let provider = choose(None, self.provider.as_deref(), environment).name().to_owned();
        let model = self.model.clone().or_else(|| self.models_of(&provider).into_iter().next());
        DefaultModel { provider, model }
    }

    /// The names of all providers, ready or not.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        let own = self.providers.keys().map(String::as_str).filter(|name| known(name).is_none());
        KNOWN_PROVIDERS.iter().map(|known| known.name).chain(own).chain([OFFLINE])
    }

    /// Models of a provider with a known price, and configured ones.
    pub fn models_of(&self, provider: &str) -> Vec<String> {
        models(provider, &self.providers)
    }

    /// All providers with their models, and what one lacks that is not ready. May run commands that print keys.
    /// Live models come from the cache: nothing is sent.
    pub fn models(&self, environment: &ProviderEnvironment<'_>, cache: &LiveCache) -> Models {
        let listed = self.providers().map(|name| {
            let models = self.models_of(name);
            let model = models.first().map_or("a-model", String::as_str);
            let missing = resolve(name, Some(model), &self.providers, environment).err();
            let missing = missing.map(|error| error.to_string());
            ListedProvider {
                name: name.to_owned(),
                ready: missing.is_none(),
                missing,
                key: key_status(name, &self.providers, environment),
                models,
                live: cache.get(name).cloned(),
                refresh_error: None,
            }
        });
        Models { default: self.default_model(environment), providers: listed.collect() }
    }

    /// The same after every provider that can be asked, or only one, has listed its models. A provider that does not answer keeps
    /// what it listed before.
    pub fn refreshed_models(
        &self,
        environment: &ProviderEnvironment<'_>,
        cache: &mut LiveCache,
        only: Option<&str>,
        wait: Duration,
    ) -> Models {
        let mut listed = self.models(environment, cache);
        let mut asked: Vec<(&mut ListedProvider, Endpoint)> = Vec::new();
        for provider in listed.providers.iter_mut().filter(|provider| provider.ready) {
            if only.is_some_and(|only| only != provider.name) {
                continue;
            }
            let model = provider.models.first().map_or("a-model", String::as_str);
            if let Ok(ResolvedProvider::Remote(endpoint)) =
                resolve(&provider.name, Some(model), &self.providers, environment)
            {
                asked.push((provider, *endpoint));
            }
        }
        let endpoints: Vec<Endpoint> = asked.iter().map(|(_, endpoint)| endpoint.clone()).collect();
        let now = Timestamp::from_clock(jiff::Timestamp::now().as_millisecond());
        for ((provider, _), found) in asked.into_iter().zip(fetch(&endpoints, wait)) {
            match found {
                Ok(models) => {
                    let live = LiveModels { fetched: now, models };
                    cache.set(&provider.name, live.clone());
                    provider.live = Some(live);
                }
                Err(error) => provider.refresh_error = Some(error),
            }
        }
        listed
    }
}
