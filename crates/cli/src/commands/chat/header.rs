//! The line that says where messages go: thread, take, model and approval.

use crate::agent::AgentFlags;
use crate::arguments::Target;
use crate::commands::run::TurnTarget;
use crate::context::Context;
use crate::ui::label::Label;

/// The header, on one line, or on two if the screen is narrow.
pub(super) fn of(context: &Context, target: &Target, agent: &AgentFlags) -> String {
    let styles = &context.styles;
    let columns = context.screen.columns().unwrap_or(80);
    let found = TurnTarget::find(context, target, false);
    let place = match &found {
        Ok(TurnTarget::Existing(resolved)) => {
            let take = format!(" / {}", resolved.take.name);
            let room = columns.saturating_sub(crate::ui::width::width(&take));
            Label::new()
                .with(styles.title, &resolved.thread.summary.title)
                .truncate(room)
                .with(styles.active, &take)
        }
        Ok(TurnTarget::NewThread) => Label::new().with(styles.title, "New thread"),
        Err(failure) => Label::new().with(styles.error, &failure.message).truncate(columns),
    };
    let settings = found.ok().and_then(|target| target.settings(context).ok()).unwrap_or_default();
    let model = match context.backend(&settings, agent) {
        Ok(backend) if backend.provider() == backend.model() => backend.model().to_owned(),
        Ok(backend) => format!("{}/{}", backend.provider(), backend.model()),
        Err(_) => "no usable model (/model says why)".to_owned(),
    };
    let approval = super::approval_name(agent.approve.unwrap_or(context.config.agent.approval));
    let how = Label::new()
        .with(styles.muted, "model ")
        .plain(&model)
        .with(styles.muted, " · approval ")
        .plain(approval);
    if place.width() + 3 + how.width() <= columns {
        format!("{}", place.with(styles.muted, " · ").join(how))
    } else {
        format!("{place}\n{}", how.truncate(columns))
    }
}
