//! The providers that are known by name, and how each of them wants to be spoken to.

use retake_model::projection::{Dialect, ThinkingField, Wire};

/// The assistant that needs no provider.
pub const OFFLINE: &str = "offline";

/// A provider.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Its name in settings and configuration.
    pub name: &'static str,
    /// What it speaks.
    pub wire: Wire,
    /// Where its interface begins.
    pub base_url: &'static str,
    /// The variables of the environment that may hold its key, the usual one first.
    pub key_variables: &'static [&'static str],
    /// Whether it answers nobody without a key.
    pub needs_key: bool,
    /// Models that it is known to have, the default first. Others can be named.
    pub models: &'static [&'static str],
}

/// The providers that are known.
pub const KNOWN: &[Known] = &[
    Known {
        name: "anthropic",
        wire: Wire::Anthropic,
        base_url: "https://api.anthropic.com",
        key_variables: &["ANTHROPIC_API_KEY"],
        needs_key: true,
        models: &["claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5", "claude-fable-5-1"],
    },
    Known {
        name: "openai",
        wire: Wire::Chat,
        base_url: "https://api.openai.com/v1",
        key_variables: &["OPENAI_API_KEY"],
        needs_key: true,
        models: &["gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-luna"],
    },
    Known {
        name: "openai-responses",
        wire: Wire::Responses,
        base_url: "https://api.openai.com/v1",
        key_variables: &["OPENAI_API_KEY"],
        needs_key: true,
        models: &["gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-luna"],
    },
    Known {
        name: "gemini",
        wire: Wire::Gemini,
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        needs_key: true,
        models: &["gemini-3.8-flash", "gemini-3.1-pro-preview", "gemini-2.5-flash"],
    },
    Known {
        name: "deepseek",
        wire: Wire::Chat,
        base_url: "https://api.deepseek.com",
        key_variables: &["DEEPSEEK_API_KEY"],
        needs_key: true,
        models: &["deepseek-v4-flash", "deepseek-v4-pro"],
    },
    Known {
        name: "openrouter",
        wire: Wire::Chat,
        base_url: "https://openrouter.ai/api/v1",
        key_variables: &["OPENROUTER_API_KEY"],
        needs_key: true,
        models: &[],
    },
    Known {
        name: "ollama",
        wire: Wire::Chat,
        base_url: "http://localhost:11434/v1",
        key_variables: &[],
        needs_key: false,
        models: &[],
    },
    Known {
        name: "vllm",
        wire: Wire::Chat,
        base_url: "http://localhost:8000/v1",
        key_variables: &[],
        needs_key: false,
        models: &[],
    },
    Known {
        name: "llama.cpp",
        wire: Wire::Chat,
        base_url: "http://localhost:8080/v1",
        key_variables: &[],
        needs_key: false,
        // It serves the one that it was started with, whatever it is called.
        models: &["default"],
    },
    // The clouds: where they are reached depends on the user's resource, region or project.
    Known {
        name: "azure",
        wire: Wire::Responses,
        base_url: "",
        key_variables: &["AZURE_OPENAI_API_KEY"],
        needs_key: true,
        // A deployment is called as its owner wants.
        models: &[],
    },
    Known {
        name: "bedrock",
        wire: Wire::Anthropic,
        base_url: "",
        key_variables: &["AWS_BEARER_TOKEN_BEDROCK"],
        needs_key: false,
        models: &[],
    },
    Known {
        name: "vertex",
        wire: Wire::Gemini,
        base_url: "",
        key_variables: &[],
        needs_key: false,
        models: &[],
    },
];

/// The provider of that name.
pub fn known(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// How a model of a provider wants to be spoken to, as far as that is known.
pub fn dialect(provider: &str, wire: Wire, model: &str) -> Dialect {
    let usual = Dialect::of(wire);
    match (provider, wire) {
        // From the fifth generation on they decide themselves how to think, and take no sampling.
        (_, Wire::Anthropic) if model.starts_with("claude-") && !is_early_claude(model) => {
            Dialect { sampling: false, thinking: ThinkingField::Adaptive, ..usual }
        }
        (_, Wire::Gemini) => Dialect { stand_in_signatures: model.contains("gemini-3"), ..usual },
        ("openai" | "openai-responses", _) => {
            let sampling = model.starts_with("gpt-4") || model.starts_with("gpt-3");
            let thinking = if sampling { ThinkingField::None } else { usual.thinking };
            Dialect { sampling, thinking, completion_tokens: true, ..usual }
        }
        ("deepseek", Wire::Chat) => Dialect { return_reasoning: true, images: false, ..usual },
        _ => usual,
    }
}

/// Whether a model is of the generations that think by a budget and take sampling.
fn is_early_claude(model: &str) -> bool {
    let rest = model.trim_start_matches("claude-");
    let late = ["opus-4-7", "opus-4-8"].iter().any(|name| rest.starts_with(name));
    let early =
        ["2", "3", "instant", "opus-4", "sonnet-4", "haiku-4"].iter().any(|name| rest.starts_with(name));
    early && !late
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_model_is_spoken_to_in_its_way() {
        let check = |provider: &str, model: &str, sampling: bool, thinking: ThinkingField| {
            let wire = known(provider).expect("a known provider").wire;
            let dialect = dialect(provider, wire, model);
            assert_eq!((dialect.sampling, dialect.thinking), (sampling, thinking), "{model}");
        };
        check("anthropic", "claude-opus-5-5", false, ThinkingField::Adaptive);
        check("anthropic", "claude-opus-4-7", false, ThinkingField::Adaptive);
        check("anthropic", "claude-sonnet-4-5-20250929", true, ThinkingField::Budget);
        check("anthropic", "claude-3-5-haiku-latest", true, ThinkingField::Budget);
        check("openai", "gpt-4.1", true, ThinkingField::None);
        check("openai", "gpt-6-luna", false, ThinkingField::None);
        check("openai-responses", "gpt-6-luna", false, ThinkingField::Effort);
        check("ollama", "llama3", true, ThinkingField::None);
    }
}
