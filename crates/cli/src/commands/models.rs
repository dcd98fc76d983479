//! `retake models`

use clap::Args;
use retake_agent::provider::config::{KeyStatus, ProviderEnvironment};
use retake_agent::provider::live::{LiveCache, WAIT};
use retake_agent::setup::{ListedProvider, Models};
use retake_model::time::Timestamp;

use crate::context::Context;
use crate::failure::Failure;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::time::relative;

/// So many live models are shown to a person; `--json` and `--all` have the others.
const SHOWN: usize = 12;

/// List providers and models, and which are ready to use.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake models
  retake models --refresh                     ask every provider that has a key for its models
  retake models --refresh anthropic --all
  retake config set agent.model anthropic/claude-sonnet-5-5
  retake settings set model gpt-6.1-sol       for one thread

Any model name can be used. Without --refresh, no provider is contacted: live models are those that the last refresh \
found.")]
pub(crate) struct Arguments {
    /// List only this provider.
    provider: Option<String>,
    /// Fetch the models of each provider that has a key, and cache them.
    #[arg(long)]
    refresh: bool,
    /// Show all live models instead of the first few.
    #[arg(long)]
    all: bool,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let setup = context.setup();
        let around = ProviderEnvironment::from_process();
        let folder = context.config.folder()?;
        let mut cache = LiveCache::read(&folder);
        let answer = if self.refresh {
            // The store comes first: a folder with something else in it does not become one.
            context.timeline()?;
            // A request about one provider contacts no others.
            let answer = setup.refreshed_models(&around, &mut cache, self.provider.as_deref(), WAIT);
            cache.write()?;
            answer
        } else {
            setup.models(&around, &cache)
        };
        let answer = self.chosen(answer)?;
        let now = Timestamp::from_clock(jiff::Timestamp::now().as_millisecond());
        context.answer(&answer, |out, styles| {
            let (heading, muted, success) = (styles.heading, styles.muted, styles.success);
            for listed in &answer.providers {
                let name = sanitize(&listed.name, LineBreaks::Fold);
                let mark = if listed.ready { format!("{success}✓{success:#}") } else { " ".to_owned() };
                let default = listed.name == answer.default.provider;
                let note_text = sanitize(&note(listed, default), LineBreaks::Fold).into_owned();
                writeln!(out, "{mark} {heading}{name:<18}{heading:#} {muted}{note_text}{muted:#}")?;
                for model in &listed.models {
                    writeln!(out, "    {}", sanitize(model, LineBreaks::Fold))?;
                }
                if let Some(error) = &listed.refresh_error {
                    writeln!(
                        out,
                        "    {muted}not refreshed: {}{muted:#}",
                        sanitize(error, LineBreaks::Fold)
                    )?;
                }
                let Some(live) = &listed.live else { continue };
                let more: Vec<&String> =
                    live.models.iter().filter(|model| !listed.models.contains(model)).collect();
                let shown = if self.all { more.len() } else { SHOWN.min(more.len()) };
                let when = relative(now, live.fetched, &context.zone);
                writeln!(out, "    {muted}live, {} models, asked {when}:{muted:#}", live.models.len())?;
                for model in &more[..shown] {
                    writeln!(out, "    {}", sanitize(model, LineBreaks::Fold))?;
                }
                if shown < more.len() {
                    writeln!(out, "    {muted}and {} more; --all shows them{muted:#}", more.len() - shown)?;
                }
            }
            Ok(())
        })
    }

    fn chosen(&self, answer: Models) -> Result<Models, Failure> {
        let Some(wanted) = &self.provider else { return Ok(answer) };
        let providers: Vec<ListedProvider> =
            answer.providers.into_iter().filter(|listed| listed.name == *wanted).collect();
        if providers.is_empty() {
            return Err(super::keys::unknown_provider(wanted));
        }
        Ok(Models { providers, ..answer })
    }
}

/// The note after a provider's name.
fn note(listed: &ListedProvider, default: bool) -> String {
    if let Some(missing) = &listed.missing {
        return missing.clone();
    }
    let key = match listed.key {
        KeyStatus::Configured => "key in the configuration",
        KeyStatus::Environment => "key in the environment",
        KeyStatus::Stored => "stored key",
        KeyStatus::NotNeeded | KeyStatus::Missing => "",
    };
    let default = if default { "the default" } else { "" };
    [default, key].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ")
}
