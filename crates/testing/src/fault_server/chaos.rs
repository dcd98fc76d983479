//! Random failures, reproducible by seed.

use std::time::Duration;

use super::streams::{ScriptedAnswer, events};
use super::{Script, ScriptStep};
use retake_agent::provider::Wire;

/// A failure of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chaos {
    /// No failure.
    None,
    /// The answer comes in tiny chunks.
    Pieces,
    /// The answer pauses.
    Hesitates,
    /// An error status.
    Status(u16),
    /// The connection is dropped.
    Cut,
    /// The stream ends early.
    Ends,
    /// The stream stalls.
    Stalls,
    /// A malformed event.
    Malformed,
    /// The server reports an error inside the stream.
    Overloaded,
}

impl Chaos {
    /// Whether the answer still arrives completely.
    pub fn is_harmless(self) -> bool {
        matches!(self, Self::None | Self::Pieces | Self::Hesitates)
    }
}

/// A script that fails with a probability in percent, and its failure.
pub fn chaos(seed: u64, percent: u64, wire: Wire, answer: &ScriptedAnswer) -> (Script, Chaos) {
    let mut rng = seed;
    let mut roll = move |sides: u64| {
        rng = rng.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (rng ^ (rng >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides.max(1)
    };
    let all = events(wire, answer);
    // Before the stop reason is sent.
    let place = roll(all.len().saturating_sub(4) as u64) as usize;
    let good = Script::events(all);
    if roll(100) >= percent {
        return (good, Chaos::None);
    }
    match roll(8) {
        0 => (good.in_chunks_of(1 + roll(5) as usize), Chaos::Pieces),
        1 => (good.with(place, ScriptStep::Pause(Duration::from_millis(roll(20)))), Chaos::Hesitates),
        2 => {
            let status = [429, 500, 502, 503, 504, 529][roll(6) as usize];
            (Script::status(status, r#"{"error":{"message":"chaos"}}"#), Chaos::Status(status))
        }
        3 => (good.with_fault_after(place, ScriptStep::Cut), Chaos::Cut),
        4 => (good.with_fault_after(place, ScriptStep::Send(b": the end\n\n".to_vec())), Chaos::Ends),
        5 => (good.with_fault_after(place, ScriptStep::Stall), Chaos::Stalls),
        6 => {
            let nonsense =
                ["data: {\n\n", "data: [1]\n\n", "data: \"\n\n", "data: nothing\n\n"][roll(4) as usize];
            (good.with(place, ScriptStep::Send(nonsense.as_bytes().to_vec())), Chaos::Malformed)
        }
        _ => {
            let event =
                "event: error\ndata: {\"error\":{\"type\":\"overloaded_error\",\"message\":\"chaos\"}}\n\n";
            (good.with(place, ScriptStep::Send(event.as_bytes().to_vec())), Chaos::Overloaded)
        }
    }
}
