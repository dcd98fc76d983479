//! Redaction covers all data that a turn leaves outside the log.

use retake_agent::approval::ApprovalMode;
use retake_agent::{Cancel, Reply};
use retake_model::id::EntryId;
use retake_store::runtime::TraceFilter;
use retake_timeline::RedactionRequest;
use serde_json::json;

use crate::world::{RecordingObserver, World, calls, text};

/// Whether the runtime database contains a text, in its file or in the trace.
fn ledger_holds(world: &World, secret: &str) -> bool {
    let store = world.folder.path().join("store");
    let raw = ["ledger.db", "ledger.db-wal"].iter().any(|name| {
        let bytes = std::fs::read(store.join(name)).unwrap_or_default();
        bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
    });
    let mut traced = false;
    let filter = TraceFilter { bodies: true, ..TraceFilter::default() };
    let runtime_database =
        world.runtime.timeline.store().runtime_database().expect("the runtime database opens");
    let each = &mut |trace_number: retake_store::runtime::TraceRecord| {
        traced |= trace_number.body.unwrap_or_default().contains(secret);
        Ok(())
    };
    runtime_database.read_trace(&filter, each).expect("the trace is read");
    raw || traced
}

/// The entry that contains a text.
fn entry_with(world: &World, text: &str) -> EntryId {
    let reader = world.runtime.timeline.read().expect("the store is readable");
    let state = reader.state(world.thread).expect("a state");
    let take = state.active_take(&reader.queries()).expect("a take");
    let found = take.entries.iter(&reader.queries(), 0).find_map(|cell| {
        let cell = cell.expect("an entry");
        let version: retake_model::entry::EntryVersion =
            retake_model::object::load(&reader.queries(), cell.version).expect("a version");
        format!("{version:?}").contains(text).then_some(cell.entry)
    });
    found.expect("an entry has it")
}

fn remembering(commands: &[&str]) -> World {
    let mut scripts = Vec::new();
    for (number, command) in commands.iter().enumerate() {
        scripts.push(calls(&[(&format!("call_{number}"), "shell", json!({"command": command}))]));
    }
    scripts.push(text("Done."));
    let mut world = World::new(scripts);
    world.runtime.approval.mode = ApprovalMode::Ask;
    let reply = Some(Reply { allowed: true, remember: true, reason: None });
    let mut witness = RecordingObserver { reply, ..RecordingObserver::default() };
    world.run_with("go on", &Cancel::new(), &mut witness).expect("the turn runs");
    world
}

#[test]
fn redacting_a_multiline_call_removes_its_approval() {
    let world =
        remembering(&["A=tok-4711-first\necho tok-4711-\u{200b}second", "cd .\npwd", "echo kept for good"]);
    let timeline = &world.runtime.timeline;
    let allowed = || {
        let runtime_database = timeline.store().runtime_database().expect("the runtime database opens");
        let approvals = runtime_database.approvals(world.runtime.project).expect("approvals");
        approvals.into_iter().map(|(_, facts)| facts).collect::<Vec<_>>()
    };
    assert_eq!(allowed().len(), 3);
    assert!(ledger_holds(&world, "tok-4711-first"), "the control: it is there before");
    for text in ["tok-4711-first", "pwd"] {
        let request =
            RedactionRequest { entry: Some(entry_with(&world, text)), ..RedactionRequest::default() };
        let plan = timeline.plan_redaction(&request).expect("a plan").expect("an entry");
        let redacted = timeline.redact(&plan).expect("a redaction");
        assert!(redacted.objects > 0);
    }
    assert_eq!(allowed(), ["shell: $ echo kept for good"]);
    for text in ["tok-4711-first", "tok-4711-", "second"] {
        assert!(!ledger_holds(&world, text), "{text}");
    }
}

#[test]
fn a_redaction_that_fails_at_any_step_is_finished_by_running_it_again() {
    let secret = "tok-0815-secret";
    let world = remembering(&[&format!("echo {secret}\necho more")]);
    let timeline = &world.runtime.timeline;
    let request = || RedactionRequest { texts: vec![secret.to_owned()], ..RedactionRequest::default() };
    // The index cannot be opened: redaction handles the runtime database before it and the store after it.
    let search = world.folder.path().join("store/search.db");
    std::fs::create_dir(&search).expect("the temporary folder is writable");
    let plan = timeline.plan_redaction(&request()).expect("a plan").expect("entries");
    assert!(!plan.versions().is_empty());
    timeline.redact(&plan).expect_err("the index is no file");
    assert!(!ledger_holds(&world, secret), "what tells of the entry goes before it");
    let again = timeline.plan_redaction(&request()).expect("a plan").expect("entries");
    assert_eq!(again.versions(), plan.versions(), "the entries are still there to be named");
    std::fs::remove_dir(&search).expect("the temporary folder is writable");
    let redacted = timeline.redact(&again).expect("it is finished");
    assert_eq!(redacted.remaining, []);
    // A second run finds nothing to redact and succeeds.
    let entry = Some(again.entries[0].entry);
    let done = RedactionRequest { entry, ..RedactionRequest::default() };
    let plan = timeline.plan_redaction(&done).expect("a plan").expect("it is known");
    assert!(plan.versions().is_empty());
    assert_eq!(timeline.redact(&plan).expect("nothing is left to do").objects, 0);
}
