//! The remotes of the store, opened.

use std::io::{self, IsTerminal, Read};

use retake_surface::open_remote;
use retake_sync::config::{RemoteConfig, Remotes};
use retake_sync::remote::{OpenMode, Remote};
use retake_sync::session::Session;

use crate::context::Context;
use crate::failure::{Code, Failure};
use crate::ui::hidden_input::read_hidden;

const LONGEST_CREDENTIAL: u64 = 16 * 1024;

/// A remote that is open.
pub(crate) struct OpenRemote {
    pub(crate) config: RemoteConfig,
    pub(crate) remotes: Remotes,
    remote: Box<dyn Remote>,
}

impl OpenRemote {
    pub(crate) fn remote(&self) -> &dyn Remote {
        &*self.remote
    }

    pub(crate) fn session<'session>(
        &'session self,
        context: &'session Context,
    ) -> Result<Session<'session>, Failure> {
        Ok(Session {
            timeline: context.timeline()?,
            remotes: &self.remotes,
            name: &self.config.name,
            remote: &*self.remote,
        })
    }
}

impl Context {
    /// The remotes of the store.
    pub(crate) fn remotes(&self) -> Result<Remotes, Failure> {
        Ok(Remotes::of_store(self.timeline()?.store().folder()))
    }

    /// The named remote, or all.
    pub(crate) fn chosen_remotes(&self, named: Option<&str>) -> Result<Vec<RemoteConfig>, Failure> {
        let remotes = self.remotes()?;
        let chosen = match named {
            Some(name) => vec![remotes.get(name)?],
            None => remotes.list()?,
        };
        if chosen.is_empty() {
            let message = "there is no remote; `retake remote add home file:///media/shared` adds a folder, \
                           s3://BUCKET a bucket, https://HUB a hub";
            return Err(Failure::new(Code::NotFound, message));
        }
        Ok(chosen)
    }

    /// Opens a remote.
    pub(crate) fn open_remote(&self, config: RemoteConfig) -> Result<OpenRemote, Failure> {
        let remote = open_remote(&config, OpenMode::Existing)?;
        Ok(OpenRemote { config, remotes: self.remotes()?, remote })
    }
}

/// Reads a credential from a prompt that shows nothing, or from standard input.
pub(crate) fn read_secret(question: &str) -> Result<String, Failure> {
    let usage = |message: &str| Failure::new(Code::Usage, message.to_owned());
    let text = if io::stdin().is_terminal() {
        read_hidden(question)?.unwrap_or_default()
    } else {
        let mut text = String::new();
        let read = io::stdin().take(LONGEST_CREDENTIAL).read_to_string(&mut text);
        read.map_err(|_| usage("standard input is not a credential; nothing was stored"))?;
        text
    };
    let text = text.trim();
    if text.is_empty() {
        return Err(usage(
            "no credential was given; type it at the prompt, or pipe it in. Nothing was stored",
        ));
    }
    Ok(text.to_owned())
}
