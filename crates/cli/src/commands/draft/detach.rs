//! `retake draft detach`

use clap::Args;
use retake_model::content::ContentId;
use retake_model::take::Take;
use retake_timeline::Command;

use crate::arguments::Target;
use crate::context::Context;
use crate::failure::{Code, Failure};

/// Let a picture go along with the draft no more.
#[derive(Args)]
#[command(after_help = "\
Examples:
  retake draft detach 1                   the first one
  retake draft detach 4b1c90")]
pub(crate) struct Arguments {
    /// Its number, or the beginning of its name, as `retake draft` shows them.
    picture: String,
    #[command(flatten)]
    target: Target,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let meant = context.meant(&context.timeline()?.look()?, &self.target)?;
        let picture = find(&meant.take, &self.picture)?;
        let detach = Command::Detach { take: meant.take.id, picture };
        super::change(context, &meant, detach, self.target.expect, None)
    }
}

/// The picture that is meant. A number is a number first: names of four figures and more are names.
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
            let message = format!("the draft has no picture {named:?}; `retake draft` shows those it has");
            Err(Failure::new(Code::NotFound, message))
        }
        _ => Err(Failure::new(Code::Usage, format!("{named:?} is the beginning of several pictures' names"))),
    }
}
