//! `retake draft detach`

use clap::Args;
use retake_model::content::ContentId;
use retake_model::take::Take;
use retake_timeline::Command;

use crate::arguments::Target;
use crate::context::Context;
use crate::failure::{Code, Failure};

/// Remove a picture or document from the draft.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake draft detach 1                   the first picture
  retake draft detach 4b1c90")]
pub(crate) struct Arguments {
    /// Number or id prefix of the picture or document, as shown by `retake draft`.
    picture: String,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let resolved = context.resolve(&context.timeline()?.read()?, &self.target)?;
        let picture = find(&resolved.take, &self.picture)?;
        let detach = Command::Detach { take: resolved.take.id, picture };
        super::change(context, &resolved, detach, self.target.expect, None)
    }
}

/// Finds the picture. Numbers of up to three digits are positions; longer ones are id prefixes.
fn find(take: &Take, named: &str) -> Result<ContentId, Failure> {
    let numbered = named.parse::<usize>().ok().filter(|_| named.len() < 4);
    let found: Vec<ContentId> = match numbered {
        Some(number) => {
            take.attached.iter().nth(number.wrapping_sub(1)).into_iter().map(|one| one.picture).collect()
        }
        None => take
            .attached
            .iter()
            .map(|one| one.picture)
            .filter(|picture| named.len() >= 4 && picture.to_string().starts_with(named))
            .collect(),
    };
    match found[..] {
        [picture] => Ok(picture),
        [] => {
            let message = format!("the draft has no picture {named:?}; `retake draft` lists its pictures");
            Err(Failure::new(Code::NotFound, message))
        }
        _ => {
            Err(Failure::new(Code::Usage, format!("{named:?} matches several pictures; use a longer prefix")))
        }
    }
}
