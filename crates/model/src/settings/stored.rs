//! Settings as they are stored.
//!
//! The first versions stored a temperature, a nucleus and a token limit in every settings object, and those numbers
//! meant "not set". They still do, so that every old object keeps its bytes and its meaning. If a user chooses
//! exactly such a number, a bit beside the others says so.

use minicbor::decode::Decoder;
use minicbor::encode::{Encoder, Write};
use minicbor::{Decode, Encode};

use super::{Effort, Settings};

const TEMPERATURE: f64 = 0.0;
const TOP_P: f64 = 1.0;
const MAX_TOKENS: u32 = 8192;

const TEMPERATURE_BIT: u8 = 1;
const TOP_P_BIT: u8 = 2;
const MAX_TOKENS_BIT: u8 = 4;

#[derive(Encode, Decode)]
struct StoredSettings {
    #[n(0)]
    project_system_prompt: String,
    #[n(1)]
    global_system_prompt: String,
    #[n(2)]
    base_system_prompt: String,
    #[n(3)]
    use_default_base_prompt: bool,
    #[n(4)]
    temperature: f64,
    #[n(5)]
    top_p: f64,
    #[n(6)]
    max_tokens: u32,
    #[n(7)]
    auto_add_history: bool,
    #[n(8)]
    provider: Option<String>,
    #[n(9)]
    model: Option<String>,
    #[n(10)]
    effort: Option<Effort>,
    /// Which of the numbers above were chosen although they are the ones that stand for "not set".
    #[n(11)]
    chosen: Option<u8>,
}

impl From<&Settings> for StoredSettings {
    fn from(settings: &Settings) -> Self {
        let same = |number: Option<f64>, default: f64| {
            number.is_some_and(|number| number.to_bits() == default.to_bits())
        };
        let bits = [
            (same(settings.temperature, TEMPERATURE), TEMPERATURE_BIT),
            (same(settings.top_p, TOP_P), TOP_P_BIT),
            (settings.max_tokens == Some(MAX_TOKENS), MAX_TOKENS_BIT),
        ];
        let chosen = bits.into_iter().filter(|(set, _)| *set).fold(0, |bits, (_, bit)| bits | bit);
        Self {
            project_system_prompt: settings.project_system_prompt.clone(),
            global_system_prompt: settings.global_system_prompt.clone(),
            base_system_prompt: settings.base_system_prompt.clone(),
            use_default_base_prompt: settings.use_default_base_prompt,
            temperature: settings.temperature.unwrap_or(TEMPERATURE),
            top_p: settings.top_p.unwrap_or(TOP_P),
            max_tokens: settings.max_tokens.unwrap_or(MAX_TOKENS),
            auto_add_history: settings.auto_add_history,
            provider: settings.provider.clone(),
            model: settings.model.clone(),
            effort: settings.effort,
            chosen: (chosen != 0).then_some(chosen),
        }
    }
}

impl From<StoredSettings> for Settings {
    fn from(stored: StoredSettings) -> Self {
        let chosen = |bit: u8| stored.chosen.unwrap_or_default() & bit != 0;
        let number = |number: f64, default: f64, bit: u8| {
            (number.to_bits() != default.to_bits() || chosen(bit)).then_some(number)
        };
        Self {
            temperature: number(stored.temperature, TEMPERATURE, TEMPERATURE_BIT),
            top_p: number(stored.top_p, TOP_P, TOP_P_BIT),
            max_tokens: (stored.max_tokens != MAX_TOKENS || chosen(MAX_TOKENS_BIT))
                .then_some(stored.max_tokens),
            project_system_prompt: stored.project_system_prompt,
            global_system_prompt: stored.global_system_prompt,
            base_system_prompt: stored.base_system_prompt,
            use_default_base_prompt: stored.use_default_base_prompt,
            auto_add_history: stored.auto_add_history,
            provider: stored.provider,
            model: stored.model,
            effort: stored.effort,
        }
    }
}

impl<Ctx> Encode<Ctx> for Settings {
    fn encode<W: Write>(
        &self,
        encoder: &mut Encoder<W>,
        context: &mut Ctx,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        StoredSettings::from(self).encode(encoder, context)
    }
}

impl<'bytes, Ctx> Decode<'bytes, Ctx> for Settings {
    fn decode(decoder: &mut Decoder<'bytes>, context: &mut Ctx) -> Result<Self, minicbor::decode::Error> {
        StoredSettings::decode(decoder, context).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{decode, encode};

    #[test]
    fn settings_of_the_first_versions_keep_their_bytes() {
        // Three empty prompts, true, 0.0, 1.0, 8192, false: what a new thread was stored with.
        let mut old = vec![0x88, 0x60, 0x60, 0x60, 0xf5, 0xfb];
        old.extend([0; 8]);
        old.extend([0xfb, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0x19, 0x20, 0x00, 0xf4]);
        assert_eq!(decode::<Settings>(&old), Ok(Settings::default()));
        assert_eq!(encode(&Settings::default()), old);
    }
}
