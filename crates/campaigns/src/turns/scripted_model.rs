//! A scripted model: randomly writes, edits, removes, runs commands and talks, on a failing server.
//!
//! It reads the folder to name existing files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use retake_agent::provider::{Stop, Wire};
use retake_model::entry::{Block, Fields, Usage};
use retake_model::projection::rules;
use retake_testing::fault_server::{
    Chaos, FaultServer, Request, Script, ScriptStep, ScriptedAnswer, call, chaos, events, text_answer,
};
use serde_json::{Value, json};

use super::DriverFault;
use crate::rng::Rng;

/// The files that it uses.
const FILES: [&str; 6] = ["a.txt", "b.txt", "c.txt", "src/d.txt", "src/deep/e.txt", "f.md"];

/// Prints a line every 10 ms, for longer than a stop may take.
const NOISY_COMMAND: &str = "i=0; while [ $i -lt 1500 ]; do echo noise; sleep 0.01; i=$((i+1)); done";

/// Duration of a slow summary: longer than a stop may take.
const SLOW_SUMMARY_TIME: Duration = Duration::from_secs(12);

/// An action during a summary.
pub(super) struct SummaryHook {
    pub(super) act: Box<dyn FnOnce() + Send>,
    /// Whether the summary is slow.
    pub(super) slow: bool,
}

/// The effect of a successful call on the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// None.
    None,
    /// The file has this content.
    Holds(String, String),
    /// A line is appended.
    Adds(String, String),
    /// A text is replaced.
    Replaces(String, String, String),
    /// The file is removed.
    Removes(String),
}

/// The model, shared by the server and the campaign.
#[derive(Clone)]
pub(super) struct ScriptedModel(Arc<Mutex<ScriptedModelState>>);

pub(super) struct ScriptedModelState {
    folder: PathBuf,
    rng: Rng,
    chaos: u64,
    mistake: Option<DriverFault>,
    wire: Wire,
    rounds: u64,
    written: u64,
    /// Whether the next call prints continuously.
    noisy: bool,
    during_summary: Option<SummaryHook>,
    /// The effects of this turn's calls; duplicate ids have none.
    pub(super) effects: BTreeMap<String, Effect>,
    pub(super) doubtful: BTreeSet<String>,
    /// Rules that requests broke.
    pub(super) broken: Vec<String>,
    pub(super) requests: u64,
    pub(super) failures: u64,
    pub(super) calls: u64,
}

impl ScriptedModel {
    pub(super) fn new(folder: PathBuf, chaos: u64, mistake: Option<DriverFault>) -> Self {
        Self(Arc::new(Mutex::new(ScriptedModelState {
            folder,
            rng: Rng::new(0),
            chaos,
            mistake,
            wire: Wire::Anthropic,
            rounds: 0,
            written: 0,
            noisy: false,
            during_summary: None,
            effects: BTreeMap::new(),
            doubtful: BTreeSet::new(),
            broken: Vec::new(),
            requests: 0,
            failures: 0,
            calls: 0,
        })))
    }

    /// Starts a server that answers as this model.
    pub(super) fn serve(&self) -> std::io::Result<FaultServer> {
        let this = self.clone();
        FaultServer::start(move |request, _| this.with(|mind| mind.respond(request)))
    }

    /// Starts a turn on this wire, with its own random numbers, optionally with a noisy tool.
    pub(super) fn begin(&self, wire: Wire, rng: Rng, noisy: bool) {
        self.with(|mind| {
            mind.noisy = noisy;
            mind.during_summary = None;
            (mind.wire, mind.rng, mind.rounds) = (wire, rng, 0);
            mind.effects.clear();
            mind.doubtful.clear();
        });
    }

    /// Registers an action for the next summary of this turn.
    pub(super) fn during_summary(&self, during: SummaryHook) {
        self.with(|mind| mind.during_summary = Some(during));
    }

    pub(super) fn with<T>(&self, see: impl FnOnce(&mut ScriptedModelState) -> T) -> T {
        see(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ScriptedModelState {
    fn respond(&mut self, request: &Request) -> Script {
        self.requests += 1;
        let mut body: Value = serde_json::from_str(&request.body).unwrap_or_default();
        if self.mistake == Some(DriverFault::CallWithoutResult) {
            forget_a_result(&mut body);
        }
        for found in rules::check(self.wire, &body) {
            self.broken.push(format!("a request on {:?}: {} {}", self.wire, found.at, found.rule));
        }
        let is_summary = body.get("tools").is_none();
        let answer = if is_summary { text_answer("A summary of it all.") } else { self.answer() };
        if is_summary && let Some(SummaryHook { act, slow }) = self.during_summary.take() {
            act();
            let mut script = Script::events(events(self.wire, &answer));
            if slow {
                script.acts = [comments(SLOW_SUMMARY_TIME), script.acts].concat();
            }
            return script;
        }
        if self.chaos > 0 && self.rng.once_in(40) {
            self.failures += 1;
            let mut script = Script::events(events(self.wire, &answer));
            script.acts.truncate(1);
            script.acts.extend(comments(Duration::from_mins(1)));
            return script;
        }
        let (script, what) = chaos(self.rng.next_u64(), self.chaos, self.wire, &answer);
        self.failures += u64::from(what != Chaos::None);
        script
    }

    fn answer(&mut self) -> ScriptedAnswer {
        self.rounds += 1;
        let mut blocks = Vec::new();
        if self.rng.once_in(4) {
            let thought = "I think about it.".to_owned();
            blocks.push(Block::Thinking { text: thought, signature: None, extra: Fields::default() });
        }
        if self.rng.once_in(2) {
            let text = match self.rng.below(40) {
                0 => "A very long answer. ".repeat(10_000),
                _ => format!("I say this, number {}. \u{1b}[31m<think>", self.rng.below(100)),
            };
            blocks.push(Block::of_text(text));
        }
        let calls = match self.rounds {
            _ if self.noisy => 2,
            5.. => 0,
            _ if self.rng.once_in(3) => 0,
            // More than one batch, and sometimes more than the limit.
            _ if self.rng.once_in(20) => 14 + self.rng.below(14),
            _ => 1 + self.rng.below(3),
        };
        for _ in 0..calls {
            let block = self.call();
            blocks.push(block);
        }
        if calls == 0 && !blocks.iter().any(|block| matches!(block, Block::Text { .. })) {
            blocks.push(Block::of_text("Done."));
        }
        let stop = if calls > 0 { Stop::ToolUse } else { Stop::EndTurn };
        // Sometimes wrong: nothing may rely on it.
        let tokens = *self.rng.pick(&[0, 5, 1_000, u64::MAX]).unwrap_or(&0);
        let usage = Usage { input_tokens: 11, output_tokens: tokens, ..Usage::default() };
        ScriptedAnswer { blocks, piece: 40, usage, stop }
    }

    fn call(&mut self) -> Block {
        self.calls += 1;
        self.written += 1;
        let id = if self.rng.once_in(12) { "the_same".to_owned() } else { format!("call_{}", self.written) };
        let path = (*self.rng.pick(&FILES).unwrap_or(&"a.txt")).to_owned();
        let line = format!("line {}", self.written);
        let (tool, input, effect) = match self.rng.below(14) {
            _ if std::mem::take(&mut self.noisy) => {
                ("shell", json!({"command": NOISY_COMMAND}), Effect::None)
            }
            0..=3 => {
                let content = format!("{line}\nand more\n");
                let input = json!({"path": path, "content": content});
                ("write", input, Effect::Holds(path, content))
            }
            4..=6 => {
                let there = std::fs::read_to_string(self.folder.join(&path)).unwrap_or_default();
                let old = there.lines().next().unwrap_or("nothing").to_owned();
                let input = json!({"path": path, "old": old, "new": line});
                ("edit", input, Effect::Replaces(path, old, line))
            }
            7..=8 => {
                let command = format!("mkdir -p src/deep && echo '{line}' >> {path}");
                ("shell", json!({"command": command}), Effect::Adds(path, format!("{line}\n")))
            }
            9 => ("shell", json!({"command": format!("rm -f {path}; echo gone")}), Effect::Removes(path)),
            10 => {
                let command = "head -c 300000 /dev/zero | tr '\\0' 'x'; echo; exit 3";
                ("shell", json!({"command": command}), Effect::None)
            }
            11 => ("read", json!({"path": path}), Effect::None),
            12 => ("write", json!({"path": "../outside.txt", "content": line}), Effect::None),
            _ => ("no_such_tool", json!({"path": path}), Effect::None),
        };
        if self.effects.insert(id.clone(), effect).is_some() {
            self.doubtful.insert(id.clone());
        }
        call(&id, tool, &input)
    }
}

/// SSE comments for this long: signs of life without content.
fn comments(time: Duration) -> Vec<ScriptStep> {
    let pause = Duration::from_millis(50);
    let comment = [ScriptStep::Pause(pause), ScriptStep::Send(b": still here\n\n".to_vec())];
    let times = (time.as_millis() / pause.as_millis()) as usize;
    std::iter::repeat_n(comment, times).flatten().collect()
}

/// The fault: removes a result from the request, on any wire.
fn forget_a_result(body: &mut Value) {
    let messages = ["messages", "input", "contents"].iter().find(|name| body.get(name).is_some());
    let Some(messages) = messages.and_then(|name| body[*name].as_array_mut()) else { return };
    let result = |value: &Value| {
        value["type"] == "tool_result"
            || value["type"] == "function_call_output"
            || value["role"] == "tool"
            || value.get("functionResponse").is_some()
    };
    if let Some(place) = messages.iter().position(result) {
        messages.remove(place);
        return;
    }
    for message in messages {
        for name in ["content", "parts"] {
            let Some(parts) = message.get_mut(name).and_then(Value::as_array_mut) else { continue };
            if let Some(place) = parts.iter().position(result) {
                parts.remove(place);
                return;
            }
        }
    }
}
