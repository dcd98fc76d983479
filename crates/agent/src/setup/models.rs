//! Lists providers and models, with what they lack.

use serde::Serialize;

use super::Setup;
use crate::provider::config::{Surroundings as Around, choose, models, resolve};
use crate::provider::known::{KNOWN, OFFLINE, known};

/// Available providers and the default model.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Models {
    /// The default provider and model.
    pub default: UsualModel,
    /// Built-in and configured providers.
    pub providers: Vec<ListedProvider>,
}

/// The default provider and model.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsualModel {
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
    /// Models with a known price, and configured ones. Other names work too.
    pub models: Vec<String>,
}

impl Setup {
    /// The default provider and model.
    pub fn usual(&self, around: &Around<'_>) -> UsualModel {
        let provider = choose(None, self.provider.as_deref(), around).name().to_owned();
        let model = self.model.clone().or_else(|| self.models_of(&provider).into_iter().next());
        UsualModel { provider, model }
    }

    /// The names of all providers, ready or not.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        let own = self.providers.keys().map(String::as_str).filter(|name| known(name).is_none());
        KNOWN.iter().map(|known| known.name).chain(own).chain([OFFLINE])
    }

    /// Models of a provider with a known price, and configured ones.
    pub fn models_of(&self, provider: &str) -> Vec<String> {
        models(provider, &self.providers)
    }

    /// All providers with their status. May run key commands.
    pub fn models(&self, around: &Around<'_>) -> Models {
        let listed = self.providers().map(|name| {
            let models = self.models_of(name);
            let model = models.first().map_or("a-model", String::as_str);
            let missing = resolve(name, Some(model), &self.providers, around).err();
            let missing = missing.map(|error| error.to_string());
            ListedProvider { name: name.to_owned(), ready: missing.is_none(), missing, models }
        });
        Models { default: self.usual(around), providers: listed.collect() }
    }
}
