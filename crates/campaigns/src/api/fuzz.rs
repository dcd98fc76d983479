//! Random requests generated from the `OpenAPI` document: none may fail the server or be slow.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use retake_agent::Setup;
use retake_agent::provider::config::ProviderEnvironment;
use retake_api::client::{ClientError, ClientRequest, ClientResponse, InProcess};
use retake_api::{Limits, Options, TokenFile};
use retake_timeline::{Rules, Timeline};
use serde_json::Value;

use super::operations::{Operation, operations};
use super::requests::{GeneratedRequest, RequestGenerator};
use super::values::KnownValues;
use crate::rng::Rng;
use crate::scratch::ScratchDir;
use crate::violation::{BoxError, CampaignError, Violation, caught};

/// A new store is created after this many requests, because a large store slows the checks down.
const REQUESTS_PER_STORE: u64 = 2_500;
/// Larger exports are not imported again.
const MAX_EXPORT_BYTES: usize = 200_000;

/// The size of a run, and the injected fault.
#[derive(Clone, Copy, Debug)]
pub struct FuzzPlan {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of requests.
    pub requests: u64,
    /// Number of servers that run in parallel, each with its own store.
    pub lanes: u64,
    /// Maximum duration of a request.
    pub longest: Duration,
    /// The injected fault, for the control.
    pub mistake: Option<FuzzFault>,
}

/// Injected faults, each triggered by an input that only a good fuzzer finds: an entry that contains a NUL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FuzzFault {
    /// The answer is a failure.
    Fails,
    /// A thread panics; the answer is unchanged.
    Panics,
    /// The answer is slow.
    RespondsSlowly,
    /// The answer has an undocumented status.
    ReturnsAnUndocumentedStatus,
}

/// The counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FuzzSummary {
    /// Number of answered requests.
    pub answered: u64,
    /// Number of requests that succeeded.
    pub done: u64,
    /// Number of refused requests.
    pub refused: u64,
    /// Number of requests that are not valid HTTP.
    pub not_http: u64,
    /// Number of stores that were created, used and verified.
    pub stores: u64,
    /// Number of routes.
    pub routes: u64,
    /// Number of routes that succeeded at least once.
    pub routes_done: u64,
    /// The slowest answer.
    pub slowest: Duration,
    /// The slowest request.
    pub slowest_request: String,
    /// Number of answers that took longer than 100 ms.
    pub slow: u64,
    /// Number of answers that took too long, but not when repeated.
    pub late: u64,
}

/// Panics of any thread since the campaign started.
static PANICS: AtomicU64 = AtomicU64::new(0);
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

fn count_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            if let Ok(mut last) = LAST_PANIC.lock() {
                *last = panic.to_string();
            }
            usual(panic);
        }));
    });
}

/// Runs the campaign.
pub fn fuzz(plan: FuzzPlan) -> Result<FuzzSummary, CampaignError> {
    count_panics();
    let before = PANICS.load(Ordering::SeqCst);
    let mut rng = Rng::new(plan.seed);
    let lanes = plan.lanes.max(1);
    let lanes: Vec<(Rng, u64)> = (0..lanes)
        .map(|lane| (rng.split(), plan.requests / lanes + u64::from(lane < plan.requests % lanes)))
        .collect();
    let outcomes: Vec<Result<(FuzzSummary, Vec<bool>), CampaignError>> = std::thread::scope(|scope| {
        let asking: Vec<_> = lanes
            .into_iter()
            .map(|(rng, requests)| scope.spawn(move || FuzzWorker::new(plan, rng, before).walk(requests)))
            .collect();
        let joined = asking.into_iter().map(|lane| {
            lane.join().unwrap_or_else(|_| Err(CampaignError::trouble("a lane of the campaign panicked")))
        });
        joined.collect()
    });
    let mut fuzzed = FuzzSummary::default();
    let mut reached: Vec<bool> = Vec::new();
    for outcome in outcomes {
        let (lane, routes) = outcome?;
        reached.resize(routes.len(), false);
        reached.iter_mut().zip(&routes).for_each(|(reached, done)| *reached |= done);
        fuzzed.add(lane);
    }
    fuzzed.routes = reached.len() as u64;
    fuzzed.routes_done = reached.iter().filter(|done| **done).count() as u64;
    Ok(fuzzed)
}

/// Every injected fault must be found.
pub fn fuzz_controls(seed: u64) -> Result<Vec<Violation>, BoxError> {
    let mistakes = [
        FuzzFault::Fails,
        FuzzFault::Panics,
        FuzzFault::RespondsSlowly,
        FuzzFault::ReturnsAnUndocumentedStatus,
    ];
    mistakes
        .into_iter()
        .map(|mistake| {
            let longest = Duration::from_secs(if mistake == FuzzFault::RespondsSlowly { 2 } else { 60 });
            let plan = FuzzPlan { seed, requests: 20_000, lanes: 1, longest, mistake: Some(mistake) };
            caught(&format!("{mistake:?}"), fuzz(plan))
        })
        .collect()
}

impl FuzzSummary {
    fn add(&mut self, other: Self) {
        self.answered += other.answered;
        self.done += other.done;
        self.refused += other.refused;
        self.not_http += other.not_http;
        self.stores += other.stores;
        self.slow += other.slow;
        self.late += other.late;
        if other.slowest > self.slowest {
            (self.slowest, self.slowest_request) = (other.slowest, other.slowest_request);
        }
    }
}

/// Runs one server after another.
struct FuzzWorker {
    plan: FuzzPlan,
    rng: Rng,
    /// Number of panics before this worker started.
    panics: u64,
    fuzzed: FuzzSummary,
    reached: Vec<bool>,
}

/// A server with a store and a project in one folder.
struct World {
    server: InProcess,
    maker: RequestGenerator,
    timeline: Timeline,
    /// Declared last, so that it is removed after everything in it is closed.
    _ground: ScratchDir,
}

impl World {
    fn new() -> Result<Self, BoxError> {
        let scratch = ScratchDir::for_files()?;
        let (store, project) = (scratch.path().join("store"), scratch.path().join("project"));
        std::fs::create_dir_all(project.join("sub"))?;
        std::fs::write(project.join("a.txt"), "one\n")?;
        let timeline = Timeline::open(&store, Rules::default())?;
        let token = TokenFile::at(store.join("serve.token"));
        let secret = token.read_or_create()?.secret().to_owned();
        let options = Options {
            timeline: timeline.clone(),
            setup: Setup { attempts: 1, ..Setup::default() },
            provider_environment: empty_environment,
            folder: project.clone(),
            token,
            hosts: Vec::new(),
            limits: Limits::default(),
            pages: None,
        };
        let server = InProcess::start(options)?;
        let place = project.display().to_string();
        let maker = RequestGenerator {
            operations: operations(server.document()),
            seen: KnownValues::new(&place),
            token: secret,
            made: 0,
            place,
            exported: Vec::new(),
        };
        Ok(Self { server, maker, timeline, _ground: scratch })
    }
}

/// An environment without keys: only the offline assistant is available.
fn empty_environment() -> ProviderEnvironment<'static> {
    ProviderEnvironment {
        variable: &|_| None,
        stored_names: &Vec::new,
        ..ProviderEnvironment::from_process()
    }
}

impl FuzzWorker {
    fn new(plan: FuzzPlan, rng: Rng, panics: u64) -> Self {
        Self { plan, rng, panics, fuzzed: FuzzSummary::default(), reached: Vec::new() }
    }

    fn walk(mut self, requests: u64) -> Result<(FuzzSummary, Vec<bool>), CampaignError> {
        let mut asked = 0;
        while asked < requests {
            let mut world = World::new()?;
            self.reached.resize(world.maker.operations.len(), false);
            for _ in 0..REQUESTS_PER_STORE.min(requests - asked) {
                let made = world.maker.next(&mut self.rng);
                self.step(&mut world, &made).map_err(|what| self.violation(asked, &made.asked, &what))?;
                asked += 1;
            }
            let World { server, timeline, _ground, .. } = world;
            drop(server);
            let found = timeline.store().verify(&mut |_| {}).map_err(CampaignError::trouble)?;
            if let Some(problem) = found.problems.first() {
                let what = format!("verify: {problem}");
                return Err(
                    Violation { campaign: "api fuzz", seed: self.plan.seed, step: asked, what }.into()
                );
            }
            self.fuzzed.stores += 1;
        }
        Ok((self.fuzzed, self.reached))
    }

    fn step(&mut self, world: &mut World, made: &GeneratedRequest) -> Result<(), String> {
        let (answered, took) = self.ask(world, &made.asked);
        self.fuzzed.slow += u64::from(took > Duration::from_millis(100));
        if took > self.fuzzed.slowest {
            self.fuzzed.slowest = took;
            self.fuzzed.slowest_request = format!("{} {}", made.asked.method, made.asked.target);
        }
        if took > self.plan.longest {
            // A busy machine can delay an answer; a slow request is slow again when repeated.
            let again = (0..2).map(|_| self.ask(world, &made.asked).1).min().unwrap_or(took);
            if again > self.plan.longest {
                return Err(format!(
                    "the answer took {} ms, and again {} ms",
                    took.as_millis(),
                    again.as_millis()
                ));
            }
            self.fuzzed.late += 1;
        }
        if PANICS.load(Ordering::SeqCst) > self.panics {
            let last = LAST_PANIC.lock().map(|last| last.clone()).unwrap_or_default();
            return Err(format!("a panic: {last}"));
        }
        let answered = match answered {
            Ok(answered) => answered,
            Err(ClientError::NotHttp) => {
                self.fuzzed.not_http += 1;
                return Ok(());
            }
            Err(error) => return Err(error.to_string()),
        };
        let operation = made.operation.map(|index| &world.maker.operations[index]);
        let answer = judge(&answered, operation)?;
        self.fuzzed.answered += 1;
        if answered.status < 300 {
            self.fuzzed.done += 1;
            if let Some(index) = made.operation {
                self.reached[index] = true;
            }
        } else {
            self.fuzzed.refused += 1;
        }
        if answered.status == 200
            && made.asked.target.contains("/export")
            && answered.body.len() < MAX_EXPORT_BYTES
        {
            world.maker.exported = answered.body;
        }
        if let (Some(operation), Some(answer)) = (operation, answer) {
            let path = operation.path.clone();
            world.maker.seen.learn_from(&path, &answer, &mut self.rng);
        }
        Ok(())
    }

    fn ask(&self, world: &World, asked: &ClientRequest) -> (Result<ClientResponse, ClientError>, Duration) {
        let started = Instant::now();
        let answered = self.plant(world.server.ask(asked), asked);
        (answered, started.elapsed())
    }

    /// Injects the fault, if its input occurs.
    fn plant(
        &self,
        answered: Result<ClientResponse, ClientError>,
        asked: &ClientRequest,
    ) -> Result<ClientResponse, ClientError> {
        let Some(mistake) = self.plan.mistake else { return answered };
        let body = String::from_utf8_lossy(&asked.body);
        let hit = asked.target.contains("/entries") && (body.contains("\\u0000") || body.contains('\0'));
        let mut answered = answered?;
        match mistake {
            _ if !hit => {}
            FuzzFault::Fails => answered.status = 500,
            FuzzFault::ReturnsAnUndocumentedStatus => answered.status = 418,
            FuzzFault::RespondsSlowly => std::thread::sleep(self.plan.longest + Duration::from_millis(10)),
            // The panic is intentional.
            FuzzFault::Panics => drop(std::thread::spawn(|| panic!("planted")).join()),
        }
        Ok(answered)
    }

    fn violation(&self, step: u64, asked: &ClientRequest, what: &str) -> CampaignError {
        let headers: Vec<String> = asked
            .headers
            .iter()
            .filter(|(name, _)| name != "Authorization" && name != "Host")
            .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value)))
            .collect();
        let shown: String = String::from_utf8_lossy(&asked.body).chars().take(400).collect();
        let what = format!(
            "{what}\n  {} {}\n  {}\n  {} bytes: {shown}",
            asked.method,
            asked.target,
            headers.join("; "),
            asked.body.len()
        );
        CampaignError::Violation(Violation { campaign: "api fuzz", seed: self.plan.seed, step, what })
    }
}

/// Checks an answer, and returns its JSON.
fn judge(answered: &ClientResponse, operation: Option<&Operation>) -> Result<Option<Value>, String> {
    let status = answered.status;
    let header = |wanted: &str| {
        answered.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    };
    let shown = || String::from_utf8_lossy(&answered.body).chars().take(400).collect::<String>();
    if status >= 500 {
        return Err(format!("answered with {status}: {}", shown()));
    }
    if let Some(operation) = operation
        && !operation.statuses.contains(&status)
    {
        return Err(format!("answered with {status}, which the document does not name: {}", shown()));
    }
    if header("x-request-id").is_none() {
        return Err("the answer does not name its request".to_owned());
    }
    let kind = header("content-type").unwrap_or_default();
    if status >= 400 {
        // An answer to HEAD has no body.
        let problem: Value = serde_json::from_slice(&answered.body).unwrap_or_default();
        let whole =
            problem["status"] == status && problem["code"].is_string() && problem["action"].is_string();
        if !(whole || answered.body.is_empty()) || kind != "application/problem+json" {
            return Err(format!("an error without problem details: {kind}, {}", shown()));
        }
        return Ok(None);
    }
    if kind == "application/json" && !answered.body.is_empty() {
        let answer = serde_json::from_slice(&answered.body);
        return answer.map(Some).map_err(|error| format!("the answer is not JSON: {error}: {}", shown()));
    }
    Ok(None)
}
