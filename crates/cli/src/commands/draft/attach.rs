//! `retake draft attach`

use std::path::PathBuf;

use clap::Args;
use retake_model::take::NewPicture;
use retake_timeline::Command;

use crate::arguments::Target;
use crate::commands::entry::picture;
use crate::context::Context;
use crate::failure::{Code, Failure};

/// Attach pictures and PDF documents to the draft. They are stored with it and sent with it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake draft attach screenshot.png
  retake draft attach before.png after.png
  retake draft attach spec.pdf")]
pub(crate) struct Arguments {
    /// Pictures (png, jpg, gif, webp) or PDF documents.
    #[arg(required = true, value_name = "FILE")]
    pictures: Vec<PathBuf>,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let read = |path: &PathBuf| {
            NewPicture::new(picture::read(path)?).map_err(|error| Failure::new(Code::Usage, error))
        };
        let pictures = self.pictures.iter().map(read).collect::<Result<_, _>>()?;
        let resolved = context.resolve(&context.timeline()?.read()?, &self.target)?;
        let attach = Command::Attach { take: resolved.take.id, pictures };
        super::change(context, &resolved, attach, self.target.expect, None)
    }
}
