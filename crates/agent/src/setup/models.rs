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
    /// Who can be asked, and what is missing for the others.
    pub fn models(&self, around: &Around<'_>) -> Models {
        let chosen = choose(None, self.provider.as_deref(), around).name().to_owned();
        let own = self.providers.keys().map(String::as_str).filter(|name| known(name).is_none());
        let names = KNOWN.iter().map(|known| known.name).chain(own).chain([OFFLINE]);
        let listed = names.map(|name| {
            let models = models(name, &self.providers);
            let model = models.first().map_or("a-model", String::as_str);
            let missing = resolve(name, Some(model), &self.providers, around).err();
            let missing = missing.map(|error| error.to_string());
            ListedProvider { name: name.to_owned(), ready: missing.is_none(), missing, models }
        });
        let providers: Vec<ListedProvider> = listed.collect();
        let first = providers.iter().find(|listed| listed.name == chosen);
        let model = self.model.clone().or_else(|| first?.models.first().cloned());
        Models { default: UsualModel { provider: chosen, model }, providers }
    }
}
