//! Thirty-two clients write while one reads.

use std::time::{Duration, Instant};

use serde_json::json;

use super::client::Client;
use super::servers::Server;
use super::{CLIENTS, MANY_THREADS, World};
use crate::Outcome;
use crate::measure::{Samples, format_duration, timed};
use crate::messages::Messages;
use crate::options::Scale;
use crate::report::{Figure, Report, Table};

/// Minimum share of the baseline's throughput.
const MIN_THROUGHPUT: f64 = 0.6;
/// Maximum duration of a read at the 99th percentile.
const MAX_READ_TIME: Duration = Duration::from_millis(10);

/// Whether writes have idempotency keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyMode {
    With,
    Without,
}

pub(crate) fn measure(
    world: &World,
    ours: &Server,
    baseline: &Server,
    scale: &Scale,
    report: &mut Report,
) -> Outcome<()> {
    let (millis, rounds) = scale.writing;
    let mut rates: [Vec<f64>; 3] = Default::default();
    for round in 0..rounds {
        eprintln!("32 clients: round {} of {rounds}", round + 1);
        let seed = 10_000 * (round as u64 + 1);
        rates[0].push(write_all(baseline, millis, |_| Ok("/".to_owned()), KeyMode::Without, seed)?);
        rates[1].push(write_all(
            ours,
            millis,
            |client| Ok(entries(world, client)),
            KeyMode::Without,
            seed + 100,
        )?);
        rates[2].push(write_all(
            ours,
            millis,
            |client| Ok(entries(world, client)),
            KeyMode::With,
            seed + 200,
        )?);
    }
    let rates = rates.map(|mut rates| {
        rates.sort_unstable_by(f64::total_cmp);
        rates[rates.len() / 2]
    });
    let mut table = Table::new(
        "32 clients: durable writes per second over HTTP",
        ["who", "per second", "to the floor", "goal", ""],
    );
    let names = ["bare axum handler, one insert", "an entry", "an entry, with an Idempotency-Key"];
    for (index, (name, rate)) in names.into_iter().zip(rates).enumerate() {
        report.figure(Figure::plain(name, CLIENTS as u64, "per second", rate));
        let share = rate / rates[0];
        let (goal, verdict) = match index {
            1 => {
                let seen = format!("{:.0} %", share * 100.0);
                (
                    "at least 60 %",
                    report.judge(
                        "entries at 32 clients",
                        "at least 60 % of the floor",
                        &seen,
                        share >= MIN_THROUGHPUT,
                    ),
                )
            }
            _ => ("", ""),
        };
        let share = format!("{:.0} %", share * 100.0);
        table.row([name.to_owned(), format!("{rate:.0}"), share, goal.to_owned(), verdict.to_owned()]);
    }
    report.table(table);
    measure_reads(world, ours, millis * rounds as u64, report)
}

fn entries(world: &World, client: usize) -> String {
    format!("/v1/threads/{}/entries", world.written[client])
}

/// Writes from all clients for a while; returns the total rate per second.
fn write_all(
    server: &Server,
    millis: u64,
    path: impl Fn(usize) -> Outcome<String>,
    keys: KeyMode,
    seed: u64,
) -> Outcome<f64> {
    let start = Instant::now();
    let done = std::thread::scope(|scope| -> Outcome<u64> {
        let mut writers = Vec::new();
        for client in 0..CLIENTS {
            let path = path(client)?;
            writers.push(scope.spawn(move || write_for(server, &path, millis, keys, seed + client as u64)));
        }
        writers.into_iter().map(|writer| writer.join().map_err(|_| "a client panicked")?).sum()
    })?;
    Ok(done as f64 / start.elapsed().as_secs_f64())
}

fn write_for(server: &Server, path: &str, millis: u64, keys: KeyMode, seed: u64) -> Outcome<u64> {
    let mut client = Client::connect(server.address, &server.token)?;
    let mut messages = Messages::new(seed);
    let until = Instant::now() + Duration::from_millis(millis);
    let mut done = 0;
    while Instant::now() < until {
        let body = json!({"entries": [{"role": "User", "content": messages.text()}]}).to_string();
        match keys {
            KeyMode::Without => client.ask("POST", path, &body)?,
            KeyMode::With => client.ask_once(path, &body, &format!("{seed}-{done}"))?,
        };
        done += 1;
    }
    Ok(done)
}

/// Reads while the others write.
fn measure_reads(world: &World, ours: &Server, millis: u64, report: &mut Report) -> Outcome<()> {
    let longest = world.sized.last().ok_or("no thread was made")?.1;
    let kinds = [
        ("a page of 50 entries", format!("/v1/threads/{longest}/entries?limit=50&start=51")),
        ("a page of the list of threads", format!("/v1/threads?project={MANY_THREADS}&limit=50")),
        ("a page of the tree of threads", format!("/v1/tree?project={MANY_THREADS}&limit=50")),
    ];
    eprintln!("reading while 32 clients write");
    let seen = std::thread::scope(|scope| -> Outcome<Vec<Samples>> {
        let writing = scope
            .spawn(|| write_all(ours, millis, |client| Ok(entries(world, client)), KeyMode::Without, 77));
        let mut client = Client::connect(ours.address, &ours.token)?;
        let mut seen = vec![Samples::default(); kinds.len()];
        while !writing.is_finished() {
            for ((_, path), samples) in kinds.iter().zip(&mut seen) {
                samples.push(timed(|| client.ask("GET", path, ""))?.1);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        writing.join().map_err(|_| "the writers panicked")??;
        Ok(seen)
    })?;
    let title = format!("Looks while 32 clients write ({} threads)", world.listed);
    let mut table = Table::new(&title, ["what", "how often", "median", "99th percentile", "goal", ""]);
    for ((name, _), samples) in kinds.iter().zip(seen) {
        report.figure(Figure::time(name, world.listed, &samples, None));
        let (slowest, goal) = (samples.slowest(), "under 10 ms");
        let verdict = report.judge(name, goal, &format_duration(slowest), slowest < MAX_READ_TIME);
        table.row([
            (*name).to_owned(),
            samples.count().to_string(),
            format_duration(samples.median()),
            format_duration(slowest),
            goal.to_owned(),
            verdict.to_owned(),
        ]);
    }
    report.table(table);
    Ok(())
}
