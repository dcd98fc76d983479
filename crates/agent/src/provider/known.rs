//! Known providers and their dialects.

use retake_model::projection::{Dialect, EffortWords, ThinkingField, Wire};

use super::catalog::{bare, find};

/// The built-in assistant, which needs no provider.
pub const OFFLINE: &str = "offline";

/// A provider.
#[derive(Clone, Copy, Debug)]
pub struct KnownProvider {
    /// Its name in settings and configuration.
    pub name: &'static str,
    /// Its wire.
    pub wire: Wire,
    /// The base of its URLs.
    pub base_url: &'static str,
    /// Environment variables that may contain its key, the usual one first.
    pub key_variables: &'static [&'static str],
    /// Whether it requires a key.
    pub needs_key: bool,
    /// Known models, the default first. Other names are allowed.
    pub models: &'static [&'static str],
}

/// All known providers.
pub const KNOWN_PROVIDERS: &[KnownProvider] = &[
    KnownProvider {
        name: "anthropic",
        wire: Wire::Anthropic,
        base_url: "https://api.anthropic.com",
        key_variables: &["ANTHROPIC_API_KEY"],
        needs_key: true,
        models: &["claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5", "claude-fable-5-1"],
    },
    KnownProvider {
        name: "openai",
        wire: Wire::Responses,
        base_url: "https://api.openai.com/v1",
        key_variables: &["OPENAI_API_KEY"],
        needs_key: true,
        models: &["gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-luna"],
    },
    KnownProvider {
        name: "openai-responses",
        wire: Wire::Responses,
        base_url: "https://api.openai.com/v1",
        key_variables: &["OPENAI_API_KEY"],
        needs_key: true,
        models: &["gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-luna"],
    },
    KnownProvider {
        name: "gemini",
        wire: Wire::Gemini,
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        key_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        needs_key: true,
        models: &["gemini-3.8-flash", "gemini-3.1-pro-preview", "gemini-2.5-flash"],
    },
    KnownProvider {
        name: "deepseek",
        wire: Wire::Chat,
        base_url: "https://api.deepseek.com",
        key_variables: &["DEEPSEEK_API_KEY"],
        needs_key: true,
        models: &["deepseek-v4-flash", "deepseek-v4-pro"],
    },
    KnownProvider {
        name: "openrouter",
        wire: Wire::Chat,
        base_url: "https://openrouter.ai/api/v1",
        key_variables: &["OPENROUTER_API_KEY"],
        needs_key: true,
        models: &[],
    },
    KnownProvider {
        name: "ollama",
        wire: Wire::Chat,
        base_url: "http://localhost:11434/v1",
        key_variables: &[],
        needs_key: false,
        models: &[],
    },
    KnownProvider {
        name: "vllm",
        wire: Wire::Chat,
        base_url: "http://localhost:8000/v1",
        key_variables: &[],
        needs_key: false,
        models: &[],
    },
    KnownProvider {
        name: "llama.cpp",
        wire: Wire::Chat,
        base_url: "http://localhost:8080/v1",
        key_variables: &[],
        needs_key: false,
        // The server has one model, which it accepts under any name.
        models: &["default"],
    },
    // Clouds: the address depends on the user's resource, region or project.
    KnownProvider {
        name: "azure",
        wire: Wire::Responses,
        base_url: "",
        key_variables: &["AZURE_OPENAI_API_KEY"],
        needs_key: true,
        // The owner chooses the name of a deployment.
        models: &[],
    },
    KnownProvider {
        name: "bedrock",
        wire: Wire::Anthropic,
        base_url: "",
        key_variables: &["AWS_BEARER_TOKEN_BEDROCK"],
        needs_key: false,
        models: &[],
    },
    KnownProvider {
        name: "vertex",
        wire: Wire::Gemini,
        base_url: "",
        key_variables: &[],
        needs_key: false,
        models: &[],
    },
];

/// Finds a provider by name.
pub fn known(name: &str) -> Option<&'static KnownProvider> {
    KNOWN_PROVIDERS.iter().find(|known| known.name == name)
}

/// The dialect of a provider's model, as far as it is known.
pub fn dialect(provider: &str, wire: Wire, model: &str) -> Dialect {
    let name = bare(model);
    let usual = Dialect::of(wire);
    match (provider, wire) {
        (_, Wire::Anthropic) => anthropic(provider, &name),
        (_, Wire::Gemini) if generation(&name, "gemini-").is_none_or(|version| version >= (3, 0)) => {
            Dialect {
                stand_in_signatures: true,
                thinking: ThinkingField::Level,
                effort_words: EffortWords {
                    off: if name.contains("flash") { "minimal" } else { "low" },
                    max: "high",
                },
                ..usual
            }
        }
        (_, Wire::Gemini) => {
            let least = if name.contains("pro") { 128 } else { 0 };
            Dialect { thinking: ThinkingField::Budget { least }, ..usual }
        }
        ("openai" | "openai-responses", _) => openai(wire, &name),
        (_, Wire::Responses) => Dialect { effort_words: openai_words(&name), ..usual },
        ("deepseek", Wire::Chat) => Dialect {
            images: false,
            thinking: ThinkingField::Switch,
            effort_words: EffortWords { off: "low", max: "max" },
            ..usual
        },
        ("openrouter", Wire::Chat) => Dialect {
            thinking: ThinkingField::Reasoning,
            effort_words: EffortWords { off: "none", max: "xhigh" },
            ..usual
        },
        // Many servers refuse an effort that their model does not support, so users enable it in the
        // configuration.
        (_, Wire::Chat) => Dialect {
            effort_words: EffortWords { off: "none", max: "high" },
            nine_letter_ids: provider.contains("mistral"),
            reads_reasoning: matches!(provider, "ollama" | "vllm"),
            ..usual
        },
    }
}

/// Claude, and other models on the same wire.
fn anthropic(provider: &str, name: &str) -> Dialect {
    let usual = Dialect::of(Wire::Anthropic);
    if !name.starts_with("claude-") || is_early_claude(name) {
        return usual;
    }
    let row = find(name);
    Dialect {
        sampling: false,
        thinking: ThinkingField::Adaptive { always: row.is_some_and(|row| row.always_thinks) },
        effort_words: EffortWords { off: "low", max: "max" },
        // Models newer than the table bind their thoughts like the newest ones in it.
        bound_thoughts: !name.starts_with("claude-opus-4"),
        // Resellers of Claude may not support the beta.
        drop_blocks: provider == "anthropic" && row.is_some_and(|row| row.drops_blocks),
        ..usual
    }
}

fn openai(wire: Wire, name: &str) -> Dialect {
    let usual = Dialect::of(wire);
    // The chat model of GPT-5 does not reason; those of later versions do.
    let sampling = ["gpt-3", "gpt-4", "gpt-5-chat"].iter().any(|prefix| name.starts_with(prefix));
    let thinking = if sampling { ThinkingField::None } else { ThinkingField::Effort };
    Dialect {
        sampling,
        thinking,
        effort_words: openai_words(name),
        completion_tokens: true,
        tools_without_reasoning: generation(name, "gpt-").is_some_and(|version| version >= (5, 4)),
        ..usual
    }
}

fn openai_words(name: &str) -> EffortWords {
    // These always reason.
    let always = name.contains("-astra") || name.starts_with("gpt-6.1-sol");
    let (off, max) = match generation(name, "gpt-") {
        Some(version) if version >= (5, 6) && always => ("low", "max"),
        Some(version) if version >= (5, 6) => ("none", "max"),
        Some(version) if version >= (5, 2) => ("none", "xhigh"),
        Some((5, 1)) => ("none", "high"),
        Some((5, 0)) => ("minimal", "high"),
        _ => ("low", "high"),
    };
    EffortWords { off, max }
}

/// The generation in the name of a model: 5.4 for `gpt-5.4-mini`.
fn generation(name: &str, family: &str) -> Option<(u32, u32)> {
    let rest = name.strip_prefix(family)?;
    let number =
        |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u32>().ok();
    let version = rest.split('-').next().unwrap_or(rest);
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    Some((number(major)?, number(minor).unwrap_or(0)))
}

/// Whether a Claude model takes a thinking budget and sampling parameters.
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
    fn each_model_has_its_dialect() {
        let check = |provider: &str, model: &str, sampling: bool, thinking: ThinkingField| {
            let wire = known(provider).expect("a known provider").wire;
            let dialect = dialect(provider, wire, model);
            assert_eq!((dialect.sampling, dialect.thinking), (sampling, thinking), "{model}");
        };
        let budget = ThinkingField::Budget { least: 1_024 };
        check("anthropic", "claude-opus-5-5", false, ThinkingField::Adaptive { always: true });
        check("anthropic", "claude-opus-4-7", false, ThinkingField::Adaptive { always: false });
        check("anthropic", "claude-sonnet-9", false, ThinkingField::Adaptive { always: false });
        check("anthropic", "claude-sonnet-4-5-20250929", true, budget);
        check("anthropic", "claude-4-sonnet-20250514", true, budget);
        check("anthropic", "claude-4.5-sonnet", true, budget);
        check("anthropic", "claude-3-5-haiku-latest", true, budget);
        check("openai", "gpt-4.1", true, ThinkingField::None);
        check("openai", "gpt-5-chat-latest", true, ThinkingField::None);
        check("openai", "gpt-5.2-chat-latest", false, ThinkingField::Effort);
        check("openai", "o5-mini", false, ThinkingField::Effort);
        check("openai", "gpt-6-luna", false, ThinkingField::Effort);
        check("openai-responses", "o4-mini", false, ThinkingField::Effort);
        check("gemini", "gemini-2.5-pro", true, ThinkingField::Budget { least: 128 });
        check("gemini", "gemini-4-argon", true, ThinkingField::Level);
        check("gemini", "gemini-flash-latest", true, ThinkingField::Level);
        check("deepseek", "deepseek-v4-pro", true, ThinkingField::Switch);
        check("openrouter", "anthropic/claude-opus-5.5", true, ThinkingField::Reasoning);
        check("vllm", "llama3", true, ThinkingField::None);
    }

    #[test]
    fn the_lowest_effort_is_one_that_the_model_knows() {
        for (model, off) in [
            ("gpt-6.1-sol", "low"),
            ("gpt-6-astra", "low"),
            ("gpt-6.1-terra", "none"),
            ("gpt-6-sol", "none"),
            ("gpt-5.1", "none"),
            ("gpt-5", "minimal"),
            ("o3", "low"),
        ] {
            assert_eq!(dialect("openai", Wire::Responses, model).effort_words.off, off, "{model}");
        }
    }

    #[test]
    fn thoughts_are_bound_from_claude_5_on_and_dropped_where_the_beta_exists() {
        let check = |provider: &str, model: &str, bound: bool, drops: bool| {
            let dialect = dialect(provider, Wire::Anthropic, model);
            assert_eq!((dialect.bound_thoughts, dialect.drop_blocks), (bound, drops), "{provider}/{model}");
        };
        check("anthropic", "claude-sonnet-5-5", true, true);
        check("anthropic", "claude-fable-5-1", true, true);
        check("anthropic", "claude-opus-6", true, false);
        check("my-proxy", "claude-sonnet-5-5", true, false);
        check("anthropic", "claude-opus-4-8", false, false);
        check("anthropic", "claude-sonnet-4-6", false, false);
    }

    #[test]
    fn reasoning_is_disabled_for_calls_only_if_the_model_requires_it() {
        for (model, expected) in
            [("gpt-5", false), ("gpt-5.2", false), ("gpt-5.4-mini", true), ("gpt-6.1-sol", true)]
        {
            assert_eq!(dialect("openai", Wire::Chat, model).tools_without_reasoning, expected, "{model}");
        }
    }
}
