//! The table of model use.

use std::io::{self, Write};

use retake_agent::ModelUsage;

use crate::agent::dollars;
use crate::ui::bytes::count;
use crate::ui::sanitize::{LineBreaks, sanitize};
use crate::ui::style::Styles;

pub(in crate::commands) fn write(
    out: &mut dyn Write,
    styles: &Styles,
    models: &[ModelUsage],
) -> io::Result<()> {
    let (heading, muted) = (styles.heading, styles.muted);
    if !models.is_empty() {
        writeln!(
            out,
            "\n{heading}{:<32} {:>8} {:>12} {:>12}  cost{heading:#}",
            "model", "answers", "read", "written"
        )?;
    }
    for model in models {
        let name = format!("{}/{}", model.provider, model.model);
        let tokens = &model.tokens;
        let read = tokens.total_input();
        let cost = match (model.micro_dollars, model.unpriced) {
            (0, unpriced) if unpriced > 0 => format!("{muted}unknown{muted:#}"),
            (cost, 0) => dollars(cost),
            (cost, _) => format!("{} and more", dollars(cost)),
        };
        let (answers, read, written) = (count(model.answers), count(read), count(tokens.output_tokens));
        let name = sanitize(&name, LineBreaks::Fold);
        writeln!(out, "{name:<32} {answers:>8} {read:>12} {written:>12}  {cost}")?;
    }
    Ok(())
}
