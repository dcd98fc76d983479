//! Translates commands in error messages into routes.
//!
//! Errors of the timeline and the agent suggest commands of the command line. The action of a problem adds the route for
//! each command that its detail mentions.

/// Commands in error messages, and the equivalent routes.
const ROUTES: &[(&str, &str)] = &[
    ("retake compress", "POST /v1/threads/{thread}/compress"),
    ("retake draft set", "PUT /v1/threads/{thread}/draft"),
    ("retake entry add", "POST /v1/threads/{thread}/entries"),
    ("retake history", "GET /v1/threads/{thread}/history"),
    ("retake jump", "POST /v1/threads/{thread}/jump"),
    ("retake models", "GET /v1/models"),
    ("retake project list", "GET /v1/projects"),
    ("retake resume", "POST /v1/threads/{thread}/turn/resume"),
    ("retake run", "POST /v1/threads/{thread}/turns"),
    ("retake snapshot list", "GET /v1/snapshots"),
    ("retake snapshot take", "POST /v1/snapshots"),
    ("retake status", "GET /v1/workspace/status"),
    ("retake steer", "POST /v1/threads/{thread}/turn/steer"),
    ("retake stop", "POST /v1/threads/{thread}/turn/interrupt"),
    ("retake worktree remove", "POST /v1/threads/{thread}/takes/{take}/worktree/remove"),
    ("retake take list", "GET /v1/threads/{thread}/takes"),
    ("retake take switch", "POST /v1/threads/{thread}/takes/{take}/switch"),
    ("retake thread list", "GET /v1/threads"),
    ("retake thread restore", "POST /v1/threads/{thread}/restore"),
    ("retake tree", "GET /v1/threads/{thread}/takes"),
];

/// The action, with routes for the commands in the detail.
pub(super) fn action(general: &str, detail: &str) -> String {
    let mut action = general.to_owned();
    // Commands are in backquotes, so that every second part is one.
    for command in [general, detail].iter().flat_map(|text| text.split('`').skip(1).step_by(2)) {
        let is = |known: &str| {
            command.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        if let Some((known, route)) = ROUTES.iter().find(|(known, _)| is(known))
            && !action.contains(route)
        {
            action = format!("{action} Over HTTP `{known}` is {route}.");
        }
    }
    action
}

#[cfg(test)]
mod tests {
    use retake_timeline::FileError;

    use super::*;

    #[test]
    fn every_listed_route_exists() {
        let routes = crate::routes::all();
        for (command, route) in ROUTES {
            let there = routes.iter().any(|known| *route == format!("{} {}", known.method, known.path));
            assert!(there, "{command}: {route}");
        }
    }

    #[test]
    fn a_command_in_the_detail_adds_its_route_to_the_action() {
        let check = |detail: &str, expected: &str| assert_eq!(action("Look.", detail), expected, "{detail}");
        check("no command", "Look.");
        check("`take:NAME` is none, nor `retake verify`, nor retake stop", "Look.");
        // The route only reads and, unlike the command, does not finish interrupted moves.
        check(&FileError::MoveUnfinished("/project".into()).to_string(), "Look.");
        check(&FileError::EmptiedFiles("/project".into()).to_string(), "Look.");
        check(
            "deleted; `retake thread restore` brings it back",
            "Look. Over HTTP `retake thread restore` is POST /v1/threads/{thread}/restore.",
        );
        check(
            "remove it with `retake worktree remove main` or `retake stop`; `retake stop` again",
            "Look. Over HTTP `retake worktree remove` is POST /v1/threads/{thread}/takes/{take}/worktree/remove. \
             Over HTTP `retake stop` is POST /v1/threads/{thread}/turn/interrupt.",
        );
    }
}
