//! Measures the delay until a stream receives a change of another process.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use retake_model::id::ThreadId;
use retake_timeline::{Rules, Timeline};
use serde_json::Value;

use super::World;
use super::client::Client;
use super::servers::Server;
use crate::Outcome;
use crate::measure::{Samples, format_duration};
use crate::messages::Messages;
use crate::options::Scale;
use crate::report::{Figure, Report, Table};
use crate::subject::append;

/// Maximum delay.
const MAX_LATENCY: Duration = Duration::from_millis(150);
/// Interval between two changes, so that each gets its own event.
const CHANGE_INTERVAL: Duration = Duration::from_millis(40);

pub(crate) fn measure(world: &World, ours: &Server, scale: &Scale, report: &mut Report) -> Outcome<()> {
    eprintln!("waiting for what another process does");
    let thread = world.written[0];
    let client = Client::connect(ours.address, &ours.token)?;
    let stream = client.stream(&format!("/v1/events?thread={thread}"))?;
    let count = scale.repetitions;
    let child = Command::new(std::env::current_exe()?)
        .arg("pulse")
        .arg(&world.folder)
        .arg(thread.to_string())
        .arg(count.to_string())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut arrivals = HashMap::new();
    for line in stream.lines() {
        let line = line?;
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let event: Value = serde_json::from_str(data)?;
        if let Some(version) = event["version"].as_u64() {
            arrivals.insert(version, now()?);
        }
        if arrivals.len() == count {
            break;
        }
    }
    let output = child.wait_with_output()?;
    let mut samples = Samples::default();
    for line in String::from_utf8(output.stdout)?.lines() {
        let (version, done) = line.split_once(' ').ok_or("a pulse has two numbers")?;
        let arrivals = arrivals.get(&version.parse()?).ok_or("a change has no event")?;
        samples.push(Duration::from_nanos(arrivals.saturating_sub(done.parse()?)));
    }
    report.figure(Figure::time("an event of another process", count as u64, &samples, None));
    let mut table = Table::new(
        "From a change in another process to its event",
        ["median", "99th percentile", "goal", ""],
    );
    let verdict = report.judge(
        "an event of another process",
        "under 150 ms",
        &format_duration(samples.slowest()),
        samples.slowest() < MAX_LATENCY,
    );
    table.row([
        format_duration(samples.median()),
        format_duration(samples.slowest()),
        "under 150 ms".to_owned(),
        verdict.to_owned(),
    ]);
    report.table(table);
    Ok(())
}

/// The writing process: makes a change at intervals, and prints when it was acknowledged.
pub(crate) fn pulse(folder: &Path, thread: ThreadId, count: usize) -> Outcome<()> {
    let timeline = Timeline::open(folder, Rules::default())?;
    let take = timeline.read()?.state(thread)?.active;
    let mut messages = Messages::new(u64::from(std::process::id()));
    for _ in 0..count {
        std::thread::sleep(CHANGE_INTERVAL);
        append(&timeline, thread, take, 1, &mut messages)?;
        let version = timeline.read()?.thread(thread)?.summary.version;
        println!("{version} {}", now()?);
    }
    Ok(())
}

/// A clock that both processes share, in nanoseconds.
fn now() -> Outcome<u64> {
    Ok(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())?)
}
