//! Serialized values match their schemas exactly.

mod validator;

use retake_agent::approval::{Decision, Fingerprint, Mode, Question as ApprovalQuestion};
use retake_agent::compare::{Comparison, compare};
use retake_agent::{Cancel, Compressed, Outcome as TurnOutcome, Reply, TurnEvent};
use retake_model::agent::{Agent, AgentState, Ended, Origin, ToolRun, ToolStatus};
use retake_model::command::Compression;
use retake_model::content::{ContentId, Kind};
use retake_model::diff::Incomparable;
use retake_model::entry::{Block, EntryVersion, Usage};
use retake_model::id::{EntryId, TurnId};
use retake_model::json::Json;
use retake_model::operation::{Actor, FileChange};
use retake_model::path::{RootPath, TreePath};
use retake_model::replay::OnConflict;
use retake_model::settings::Settings;
use retake_model::state::Visibility;
use retake_model::summary::{TakeSummary, ThreadSummary};
use retake_model::surroundings::Surroundings;
use retake_model::take::{FileItem, FileList, Sent};
use retake_model::turn::{Letter, PartialAnswer, RunningTurn};
use retake_timeline::store::{
    BudgetState, Collected, LogState, Problem, Purged, Redacted, Repaired, Salvaged, Share, Shown, Snippet,
    Stage, Usage as StoreUsage, Verified,
};
use retake_timeline::{
    Advanced, ApartFolder, Blame, Caller, Changed, Changes, ClosedApart, Command, Detail, Done, EntryView,
    Exported, FileLog, FileReport, FilesAt, Goal, Halves, Handling, HistoryItem, Imported, Importing, Moment,
    Moved, OpenedApart, PlanRequest, Project, Promoted, Question, Recovered, Restored, Seen, Spot, Standing,
    Tree, Unit,
};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::json;

use crate::world::{Witness, World, calls, text};

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().for_serialize().into_generator()
}

/// Checks a value against its schema.
fn check<T: Serialize + JsonSchema>(value: &T) {
    let schema = generator().into_root_schema_for::<T>().to_value();
    let value = serde_json::to_value(value).expect("JSON");
    if let Err(why) = validator::validate(&schema, &value) {
        panic!("{}: {why}\n{value:#}\n{schema:#}", T::schema_name());
    }
}

fn check_all<T: Serialize + JsonSchema>(values: impl IntoIterator<Item = T>) {
    let values: Vec<T> = values.into_iter().collect();
    assert!(!values.is_empty(), "{}", T::schema_name());
    values.iter().for_each(check);
}

#[test]
fn no_two_types_have_one_name() {
    let mut all = generator();
    macro_rules! add {
        ($($type:ty),* $(,)?) => { $( all.subschema_for::<$type>(); )* };
    }
    add!(Decision, Fingerprint, Mode, ApprovalQuestion, Comparison, Compressed, TurnOutcome, TurnEvent);
    add!(Agent, Incomparable, EntryVersion, FileChange, RootPath, OnConflict, Settings, Visibility);
    add!(TakeSummary, ThreadSummary, Surroundings, FileItem, FileList, Sent, Letter, RunningTurn);
    add!(BudgetState, Collected, LogState, Purged, Redacted, Repaired, Salvaged, Share, Shown, Snippet);
    add!(Stage, StoreUsage, Verified, Advanced, ApartFolder, Blame, Changed, Changes, ClosedApart, Done);
    add!(EntryView, Exported, FileLog, FileReport, FilesAt, Halves, HistoryItem, Imported, Moment, Moved);
    add!(OpenedApart, Project, Promoted, Recovered, Restored, Seen, Standing, Tree);
    let names: Vec<String> = all.definitions().keys().cloned().collect();
    assert!(names.len() > 90, "{}", names.len());
    // schemars appends a number to the name of a second type of the same name.
    let numbered = |name: &&String| name.ends_with(|letter: char| letter.is_ascii_digit());
    assert_eq!(names.iter().find(numbered), None);
}

#[test]
fn what_a_turn_says_and_leaves_is_as_described() {
    let content = "one\ntwo\n";
    let mut world = World::new(vec![
        calls(&[("w", "write", json!({"path": "new.txt", "content": content})), ("n", "nothing", json!({}))]),
        text("Done."),
    ]);
    world.shop.approval.mode = Mode::Ask;
    let reply = Reply { allowed: true, remember: true, reason: None };
    let mut witness = Witness { reply: Some(reply), ..Witness::default() };
    let outcome = world.run_with("write", &Cancel::new(), &mut witness).expect("the turn runs");
    check(&outcome);
    assert!(witness.events.iter().any(|event| matches!(event, TurnEvent::ApprovalRequested { .. })));
    check_all(witness.events);
    let (timeline, thread) = (world.shop.timeline.clone(), world.thread);
    let desk = world.shop.desk.clone().expect("files are kept");
    let project = desk.project();
    std::fs::write(world.project.join("new.txt"), "one\n2\n").expect("a file");
    let seen = desk.look(thread, Caller::human()).expect("a look");
    check(&seen);

    let looking = timeline.look().expect("a look");
    let state = looking.state(thread).expect("a state");
    let main = state.active_take(&looking.queries()).expect("a take");
    check_all(looking.page(thread, &main, 0..main.entries.len()).expect("entries"));
    check_all(looking.history(thread, None, 100).expect("a history"));
    check(&looking.standing(thread).expect("a standing"));
    check(&looking.tree(Some(project), retake_timeline::store::Deleted::Shown).expect("a tree"));
    check(&looking.settings(&state).expect("settings"));
    let files = looking.files(thread, None, 100).expect("files");
    let oldest = files.last().expect("the first look").files.after;
    check_all(files);
    let hunks = Question { paths: Vec::new(), detail: Detail::Hunks(3) };
    check(&looking.changes(oldest, seen.snapshot, &hunks).expect("changes"));
    let path = RootPath { root: String::new(), path: TreePath::new(b"new.txt").expect("a path") };
    check(&looking.blame(project, &path, seen.snapshot, None).expect("a blame"));
    check(&looking.file_log(project, &path, None, 10).expect("a log"));
    drop(looking);

    let restored = desk.restore(thread, oldest, &[], Caller::human(), Handling::default());
    check(&restored.expect("it is restored"));
    let (undo, options) = (Goal::Undo(Unit::Turn, 1), Handling::default());
    let branch = Command::Branch { from: main.id, at: None, name: None };
    for request in [PlanRequest::Move(undo), PlanRequest::Change(branch.clone())] {
        check(desk.plan(thread, request, Caller::human(), options).expect("a plan").preview());
    }
    check(&desk.go(thread, undo, Caller::human(), options).expect("an undo"));
    check(&desk.change(thread, branch, Caller::human(), options).expect("a branch"));
    check(&timeline.undo(thread, Unit::Operation, 1, Caller::human()).expect("an undo"));
}

#[test]
fn every_kind_of_change_is_as_described() {
    let world = World::new(vec![text("Done."), text("Again.")]);
    world.run("begin");
    let (timeline, thread, take) = (world.shop.timeline.clone(), world.thread, world.take());
    let change = |command: Command| timeline.change(thread, command, Caller::human()).expect("a change");
    let entry = |text: &str| {
        let mut version = EntryVersion::from_text("AI", text, timeline.now());
        version.extra.insert("ticket".to_owned(), Json::new("[1, null]").expect("JSON"));
        version.usage = Some(Usage { input_tokens: 3, ..Usage::default() });
        version.model = Some("a model".to_owned());
        version
    };
    let blocks = r#"[{"type":"thinking","text":"hm","signature":"s"},{"type":"text","text":"t","more":{"a":1}},
        {"type":"tool_call","call":"c","name":"n","input":null},{"type":"citation","pages":[1]},
        {"type":"tool_result","call":"c","text":"r","failed":true}]"#;
    let blocks: Vec<Block> = serde_json::from_str(blocks).expect("blocks");
    check_all(blocks.clone());
    let new = |text: &str| vec![EntryVersion { blocks: blocks.clone(), ..entry(text) }.into()];
    check(&change(Command::AddEntries { take, at: Spot::End, entries: new("a") }));
    let looking = timeline.look().expect("a look");
    let main = looking.state(thread).expect("a state").active_take(&looking.queries()).expect("a take");
    let page = looking.page(thread, &main, 0..main.entries.len()).expect("entries");
    check_all(page.clone());
    let (first, last) = (page[0].id, page[page.len() - 1].id);
    drop(looking);
    let item = FileItem {
        path: "a.rs".to_owned(),
        extra: [("lines".to_owned(), Json::new("[1,2]").expect("JSON"))].into_iter().collect(),
    };
    check(&item);
    let set = vec![("temperature".to_owned(), "0.5".to_owned())];
    for command in [
        Command::EditEntry { take, entry: last, text: "b".to_owned() },
        Command::ChangeRole { take, entry: last, role: "System".to_owned() },
        Command::RewriteEntry { take, entry: last, version: entry("c") },
        Command::Fork { from: take, at: first, name: None },
        Command::RenameTake { take, name: "first".to_owned() },
        Command::Branch { from: take, at: Some(last), name: Some("second".to_owned()) },
        Command::Switch { take },
        Command::DeleteEntries { take, entries: vec![last] },
        Command::Rename { title: "another".to_owned() },
        Command::Tag { add: vec!["tag".to_owned()], remove: Vec::new() },
        Command::Pin { pinned: true },
        Command::Share {
            visibility: Some(Visibility::Public),
            private: None,
            shared_with_support: Some(true),
        },
        Command::SetRoles { roles: vec!["User".to_owned()] },
        Command::Set { values: set },
        Command::SetDraft { take, text: "typed".to_owned() },
        Command::SetFiles { take, list: FileList::ContextFiles, items: vec![item] },
        Command::Save { name: "here".to_owned() },
        Command::Truncate { take, pairs: 0 },
        Command::ReplaceEntries { take, entries: new("d") },
    ] {
        check(&change(command));
    }
    let looking = timeline.look().expect("a look");
    let seen =
        looking.state(thread).expect("a state").active_take(&looking.queries()).expect("a take").entries;
    drop(looking);
    let summary = entry("all of it").into();
    let compression = Compression { turn: None, seen, end: seen.len(), kept: Vec::new(), summary };
    for command in [Command::Compress { take, compression }, Command::Clear { take }, Command::Reset] {
        check(&change(command));
    }
    let second = timeline.look().expect("a look").tree(None, retake_timeline::store::Deleted::Hidden);
    let second = second.expect("a tree").threads[0].all_takes.last().expect("a take").id;
    check(&timeline.promote(thread, second, None, Caller::human()).expect("a promotion"));
    // It is no longer the last thread of its project.
    check(&change(Command::Delete));
    check(&change(Command::Restore));
    let looking = timeline.look().expect("a look");
    check_all(looking.history(thread, None, 1000).expect("a history"));
    check(&looking.tree(None, retake_timeline::store::Deleted::Shown).expect("a tree"));

    let mut file = Vec::new();
    check(&looking.export(thread, &mut file, &mut |_, _| ()).expect("an export"));
    let file = std::io::Cursor::new(file);
    let imported = timeline.import(file, world.shop.project, Importing::Copy, |_, _| ());
    check(&imported.expect("an import"));
    let store = timeline.store();
    check(&store.verify(&mut |_| ()).expect("it can be read"));
    check(&store.usage().expect("a sum"));
    check_all(store.shares().expect("shares"));
    check_all([1, 1 << 40].map(|budget| store.against(budget).expect("a sum")));
    check(&timeline.project(&world.project).expect("a project"));
}

#[test]
fn two_takes_side_by_side_are_as_described() {
    let world = World::new(vec![text("One."), text("Two.")]);
    world.run("begin");
    let (timeline, thread, take) = (&world.shop.timeline, world.thread, world.take());
    timeline
        .change(thread, Command::Branch { from: take, at: None, name: None }, Caller::human())
        .expect("a branch");
    world.run("begin otherwise");
    let looking = timeline.look().expect("a look");
    let state = looking.state(thread).expect("a state");
    let found = |id| state.take(&looking.queries(), id).expect("a look").expect("a take");
    let takes = [&found(take), &found(state.active)];
    check(&compare(&looking, thread, takes, &world.shop.prices).expect("a comparison"));
}

#[test]
fn what_rarely_happens_is_as_described() {
    let (entry, turn) = (EntryId::from_bytes([7; 16]), TurnId::from_bytes([255; 16]));
    let blob = ContentId::of(Kind::Blob, b"x");
    let run = |status: ToolStatus| ToolRun { call: "c".to_owned(), name: "shell".to_owned(), status };
    let calls = vec![run(ToolStatus::Pending), run(ToolStatus::Running)];
    let states = [
        AgentState::Waiting,
        AgentState::Calling { attempt: 1, steered: true },
        AgentState::ShuttingDown { unfinished: true },
    ];
    check_all(calls);
    check_all(states.map(|state| Agent { turn, state }));
    check_all([
        Letter::Interrupt,
        Letter::Steer { entry, text: "t".to_owned() },
        Letter::Decide { call: "c".to_owned(), allowed: true, remember: false, reason: None },
    ]);
    check_all([
        Actor::Human,
        Actor::ToolCall { call: "c".to_owned() },
        Actor::Client { name: "n".to_owned() },
    ]);
    check_all([Ended::Completed, Ended::Failed, Ended::Interrupted]);
    check_all([Origin::Model, Origin::Tool, Origin::Setup]);
    check_all([Block::Image { media: "image/png".to_owned(), blob, extra: [].into_iter().collect() }]);
    check(&Surroundings { git_dirty: Some(true), ..Surroundings::default() });
    check(&Settings::default());
    check(&Usage {
        extra: [("cost".to_owned(), Json::new("0.5").expect("JSON"))].into_iter().collect(),
        ..Usage::default()
    });
    let world = World::new(Vec::new());
    let now = world.shop.timeline.now();
    let partial = PartialAnswer { entry, blocks: vec![Block::of_text("so far")], model: None, began: now };
    let (thread, take) = (world.thread, world.take());
    check(&RunningTurn { thread, take, turn, started: now, process: 1, partial: Some(partial) });
    check_all([
        Problem::Database { message: "m".to_owned() },
        Problem::ObjectMalformed { number: 1, kind: Kind::Blob, id: blob },
        Problem::TalliesDiffer { count: 2 },
    ]);
    check_all([Mode::Ask, Mode::AllowEdits, Mode::AllowAll, Mode::Deny]);
    check_all([Decision::Allow, Decision::Ask, Decision::Deny]);
}
