//! Eight concurrent writers: many changes share one transaction and one sync.
//!
//! ```text
//!   one       one thread of this process, one conversation
//!   eight     eight threads of this process, a conversation each           what the goal is about
//!   together  eight threads of this process, all on one conversation
//!   apart     eight processes, a conversation each                         no shared transactions
//! ```
//!
//! The four cases are interleaved, for a second each, in several rounds.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use retake_model::id::{TakeId, ThreadId};
use retake_timeline::{Rules, Timeline};

use crate::Outcome;
use crate::messages::Messages;
use crate::options::Scale;
use crate::report::{Figure, Report, Table};
use crate::subject::{append, fill, new_thread};

const WRITERS: u64 = 8;
/// Minimum throughput of eight writers relative to one.
const MIN_SPEEDUP: f64 = 4.0;

type Conversation = (ThreadId, TakeId);

pub(crate) fn measure(folder: &Path, scale: &Scale, report: &mut Report) -> Outcome<()> {
    let folder = folder.join("writers");
    let timeline = Timeline::open(&folder, Rules::default())?;
    let mut conversations = Vec::new();
    for number in 0..WRITERS {
        let thread = new_thread(&timeline, &format!("writer {number}"))?;
        fill(&timeline, &thread, 400, 100, &mut Messages::new(number))?;
        conversations.push((thread.thread, thread.summary.active.id));
    }
    let (millis, rounds) = scale.writing;
    let shared = vec![conversations[0]; WRITERS as usize];
    let mut rates: [Vec<f64>; 4] = Default::default();
    for round in 0..rounds {
        eprintln!("writers: round {} of {rounds}", round + 1);
        // Unique messages: a stored one would cost less.
        let seed = 1_000 * (round as u64 + 1);
        rates[0].push(threads(&timeline, &conversations[..1], millis, seed + 100)?);
        rates[1].push(threads(&timeline, &conversations, millis, seed + 200)?);
        rates[2].push(threads(&timeline, &shared, millis, seed + 300)?);
        rates[3].push(processes(&folder, &conversations, millis)?);
    }
    let rates = rates.map(|mut rates| {
        rates.sort_unstable_by(f64::total_cmp);
        rates[rates.len() / 2]
    });
    let names = [
        "one writer",
        "8 threads, a conversation each",
        "8 threads, one conversation",
        "8 processes, a conversation each",
    ];
    let mut table = Table::new("Writers: appends per second", ["who", "per second", "to one", "goal", ""]);
    for (index, (name, rate)) in names.into_iter().zip(rates).enumerate() {
        report.figure(Figure::plain(name, WRITERS, "per second", rate));
        let times = rate / rates[0];
        let (goal, verdict) = if index == 1 {
            let verdict =
                report.judge("8 writers", "at least 4× one", &format!("{times:.2}×"), times >= MIN_SPEEDUP);
            ("at least 4×", verdict)
        } else {
            ("", "")
        };
        table.row([
            name.to_owned(),
            format!("{rate:.0}"),
            format!("{times:.2}×"),
            goal.to_owned(),
            verdict.to_owned(),
        ]);
    }
    report.table(table);
    Ok(())
}

/// Appends from one thread per conversation; returns the total rate per second.
fn threads(timeline: &Timeline, conversations: &[Conversation], millis: u64, seed: u64) -> Outcome<f64> {
    let start = Instant::now();
    let done = std::thread::scope(|scope| -> Outcome<u64> {
        let writers: Vec<_> = (seed..)
            .zip(conversations)
            .map(|(seed, conversation)| scope.spawn(move || write_for(timeline, *conversation, millis, seed)))
            .collect();
        let done = writers.into_iter().map(|writer| writer.join().map_err(|_| "a writer panicked")?);
        done.sum()
    })?;
    Ok(done as f64 / start.elapsed().as_secs_f64())
}

/// Appends from processes; each reports its number of changes and its duration.
fn processes(folder: &Path, conversations: &[Conversation], millis: u64) -> Outcome<f64> {
    let start = |(thread, _): &Conversation| -> Outcome<Child> {
        Ok(Command::new(std::env::current_exe()?)
            .arg("writer")
            .arg(folder)
            .arg(thread.to_string())
            .arg(millis.to_string())
            .stdout(Stdio::piped())
            .spawn()?)
    };
    let children = conversations.iter().map(start).collect::<Outcome<Vec<_>>>()?;
    let mut done = 0;
    for child in children {
        let output = child.wait_with_output()?;
        done += String::from_utf8(output.stdout)?.trim().parse::<u64>()?;
    }
    Ok(done as f64 / Duration::from_millis(millis).as_secs_f64())
}

/// Appends to one conversation for a while.
fn write_for(timeline: &Timeline, conversation: Conversation, millis: u64, seed: u64) -> Outcome<u64> {
    let mut messages = Messages::new(seed);
    let until = Instant::now() + Duration::from_millis(millis);
    let mut done = 0;
    while Instant::now() < until {
        append(timeline, conversation.0, conversation.1, 1, &mut messages)?;
        done += 1;
    }
    Ok(done)
}

/// The child process.
pub(crate) fn child(folder: &Path, thread: ThreadId, millis: u64) -> Outcome<()> {
    let timeline = Timeline::open(folder, Rules::default())?;
    let take = timeline.read()?.state(thread)?.active;
    println!("{}", write_for(&timeline, (thread, take), millis, 1_000_000 + u64::from(std::process::id()))?);
    Ok(())
}
