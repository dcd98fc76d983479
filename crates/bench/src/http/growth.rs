//! Fork and undo over HTTP, in short and in long threads.

use serde_json::{Value, json};

use super::World;
use super::client::Client;
use super::servers::Server;
use crate::Outcome;
use crate::measure::{Samples, format_duration, ratio, timed};
use crate::options::Scale;
use crate::report::{Figure, Report, Table};

/// Maximum ratio of the longest to the shortest thread.
const MAX_GROWTH: f64 = 1.5;

pub(crate) fn measure(world: &World, ours: &Server, scale: &Scale, report: &mut Report) -> Outcome<()> {
    let mut client = Client::connect(ours.address, &ours.token)?;
    let mut forks = vec![Samples::default(); world.sized.len()];
    let mut undos = forks.clone();
    let mut messages = Vec::new();
    for (size, thread) in &world.sized {
        let path = format!("/v1/threads/{thread}/entries?limit=8&start={}", size / 2);
        let page: Value = serde_json::from_slice(&client.ask("GET", &path, "")?)?;
        let user = page["items"]
            .as_array()
            .and_then(|items| items.iter().find(|item| item["entry"]["role"] == "User"));
        messages.push(user.ok_or("no user message")?["id"].as_str().unwrap_or_default().to_owned());
    }
    for round in 0..scale.repetitions {
        for (index, (_, thread)) in world.sized.iter().enumerate() {
            let name = format!("fork {round}");
            let body = json!({"entry": messages[index], "name": name, "scope": "conversation"}).to_string();
            forks[index].push(timed(|| client.ask("POST", &format!("/v1/threads/{thread}/fork"), &body))?.1);
            let body = json!({"scope": "conversation"}).to_string();
            undos[index].push(timed(|| client.ask("POST", &format!("/v1/threads/{thread}/undo"), &body))?.1);
        }
    }
    let sizes = world.sized.iter().map(|(size, _)| format!("{size} entries"));
    let header = ["what".to_owned()].into_iter().chain(sizes).chain([
        "longest to shortest".to_owned(),
        "goal".to_owned(),
        String::new(),
    ]);
    let mut table = Table::new("Fork and undo over HTTP", header);
    for (name, all) in [("fork in the middle", forks), ("undo", undos)] {
        let growth = ratio(all[all.len() - 1].median(), all[0].median());
        let seen = format!("{growth:.2}×");
        let verdict = report.judge(&format!("{name} over HTTP"), "flat", &seen, growth <= MAX_GROWTH);
        for ((size, _), samples) in world.sized.iter().zip(&all) {
            report.figure(Figure::time(&format!("{name} over HTTP"), *size, samples, None));
        }
        let medians = all.iter().map(|samples| format_duration(samples.median()));
        table.row([name.to_owned()].into_iter().chain(medians).chain([
            seen,
            "at most 1.5×".to_owned(),
            verdict.to_owned(),
        ]));
    }
    report.table(table);
    Ok(())
}
