//! Which providers and models can be asked, and what is missing for the others.

use serde::Serialize;

use super::Setup;
use crate::provider::config::{Surroundings as Around, choose, models, resolve};
use crate::provider::known::{KNOWN, OFFLINE, known};

/// Who can be asked.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Models {
    /// Who answers unless a thread says otherwise.
    pub default: UsualModel,
    /// Those that are known, and those of the configuration.
    pub providers: Vec<ListedProvider>,
}

/// Who answers unless a thread says otherwise.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsualModel {
    /// Who serves it.
    pub provider: String,
    /// The model.
    pub model: Option<String>,
}

/// A provider, and whether it can be asked.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedProvider {
    /// Its name.
    pub name: String,
    /// Whether it can be asked.
    pub ready: bool,
    /// What is missing, if anything is.
    pub missing: Option<String>,
    /// Models with a known price, and those of the configuration. Any other name can be given too.
    pub models: Vec<String>,
}

impl Setup {
    /// Who answers unless a thread says otherwise.
    pub fn usual(&self, around: &Around<'_>) -> UsualModel {
        let provider = choose(None, self.provider.as_deref(), around).name().to_owned();
        let model = self.model.clone().or_else(|| self.models_of(&provider).into_iter().next());
        UsualModel { provider, model }
    }

    /// The names of all providers, whether they can be asked or not.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        let own = self.providers.keys().map(String::as_str).filter(|name| known(name).is_none());
        KNOWN.iter().map(|known| known.name).chain(own).chain([OFFLINE])
    }

    /// Models of a provider with a known price, and those of the configuration.
    pub fn models_of(&self, provider: &str) -> Vec<String> {
        models(provider, &self.providers)
    }

    /// Who can be asked, and what is missing for the others. That may run commands which tell keys.
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
