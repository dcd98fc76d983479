//! A hub as a remote, over HTTP.
//!
//! ```text
//!   https://hub.example.org              the personal space of the account
//!   https://hub.example.org/s/SPACE      another space
//! ```
//!
//! Every request is answered by the hub's database, so that a request that was lost on the way can be repeated: a second push of
//! the same bundle is refused with the head that the first one made. Large bundles are uploaded in parts before their push,
//! and an upload that broke off continues where it ended.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Url};
use retake_model::content::ContentId;
use retake_model::id::ThreadId;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::http::{Answer, HttpClient, Request};
use super::{
    Feed, FeedEvent, PackHead, ProjectName, PushOutcome, Remote, RemoteError, RemoteHead, RemoteSummary,
    RemoteThread, Seen,
};
use crate::bundle::{BundleId, MAX_UNPACKED};
use crate::wire::{
    self, AccountInfo, ApproveRequest, BundleList, BundleRow, INLINE_BYTES, LoggedIn, LoginRequest,
    LoginStarted, PART_BYTES, PackList, PackRow, Problem, ProblemCode, PushRequest, RedactRequest,
    RedactionList, SpaceInfo, ThreadList, ThreadSummary, TokenRequest, UploadState,
};

/// The most bytes of an answer that is not a bundle.
const MOST: u64 = 64 << 20;
/// The longest wait for news of one request.
const LONGEST_WAIT: Duration = Duration::from_secs(50);
/// A hub that asks for a short pause gets it before the request fails.
const SHORT_PAUSE: Duration = Duration::from_secs(5);
const TRIES: u32 = 6;

/// A space of a hub.
pub struct HubRemote {
    connection: HubConnection,
    space: String,
}

/// A hub and the credentials for it.
pub struct HubConnection {
    client: HttpClient,
    base: Url,
    token: Option<HeaderValue>,
}

impl HubConnection {
    /// A connection to a hub, with the token of this device if it has one.
    pub fn new(address: &str, token: Option<&str>) -> Result<Self, RemoteError> {
        let refused = |reason: String| RemoteError::Refused { place: address.to_owned(), reason };
        let base: Url =
            address.parse().map_err(|error| refused(format!("its address is malformed: {error}")))?;
        let token = token.map(|token| HeaderValue::from_str(&format!("Bearer {}", token.trim())));
        let mut token = token.transpose().map_err(|_| refused("the token is malformed".to_owned()))?;
        if let Some(token) = &mut token {
            token.set_sensitive(true);
        }
        let unreachable = |error| RemoteError::Unreachable { place: address.to_owned(), error };
        Ok(Self { client: HttpClient::new().map_err(unreachable)?, base, token })
    }

    /// Starts a login of this device.
    pub fn start_login(&self, name: &str) -> Result<LoginStarted, RemoteError> {
        self.post(&["v1", "auth", "device"], &LoginRequest { name: name.to_owned() })
    }

    /// Asks whether the login was approved; `None` if not yet.
    pub fn finish_login(&self, login: &LoginStarted) -> Result<Option<LoggedIn>, RemoteError> {
        let request = TokenRequest { device_code: login.device_code.clone() };
        let answer = self.send(Method::POST, &["v1", "auth", "token"], "", &encode(&request), MOST)?;
        match problem(&answer).map(|problem| problem.code) {
            Some(ProblemCode::Pending) => Ok(None),
            _ => self.decode(self.checked(answer)?).map(Some),
        }
    }

    /// Approves the login of another device for the account of this one.
    pub fn approve_login(&self, code: &str) -> Result<(), RemoteError> {
        let request = ApproveRequest { user_code: code.to_owned() };
        let answer = self.send(Method::POST, &["v1", "auth", "approve"], "", &encode(&request), MOST)?;
        self.checked(answer).map(drop)
    }

    /// Who this device is, and the spaces that it may use.
    pub fn account(&self) -> Result<AccountInfo, RemoteError> {
        self.get(&["v1", "account"], "")
    }

    fn place(&self) -> String {
        self.base.to_string().trim_end_matches('/').to_owned()
    }

    fn get<T: DeserializeOwned>(&self, path: &[&str], query: &str) -> Result<T, RemoteError> {
        let answer = self.send(Method::GET, path, query, b"", MOST)?;
        self.decode(self.checked(answer)?)
    }

    fn post<T: DeserializeOwned>(&self, path: &[&str], body: &impl Serialize) -> Result<T, RemoteError> {
        let answer = self.send(Method::POST, path, "", &encode(body), MOST)?;
        self.decode(self.checked(answer)?)
    }

    fn send(
        &self,
        method: Method,
        path: &[&str],
        query: &str,
        body: &[u8],
        most: u64,
    ) -> Result<Answer, RemoteError> {
        self.send_and_wait(method, path, query, body, (most, Duration::ZERO))
    }

    fn send_and_wait(
        &self,
        method: Method,
        path: &[&str],
        query: &str,
        body: &[u8],
        (most, wait): (u64, Duration),
    ) -> Result<Answer, RemoteError> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.clear().extend(path);
        }
        url.set_query((!query.is_empty()).then_some(query));
        let mut headers = HeaderMap::new();
        if let Some(token) = &self.token {
            headers.insert(AUTHORIZATION, token.clone());
        }
        let mut tries = 0;
        loop {
            tries += 1;
            let (method, url, headers) = (method.clone(), url.clone(), headers.clone());
            let request = Request { method, url, headers, body, most, wait };
            let answer = self.client.send(&self.place(), request)?;
            let pause = retry_after(&answer).filter(|pause| *pause <= SHORT_PAUSE);
            match (answer.status, pause) {
                (429 | 503, Some(pause)) if tries < TRIES => std::thread::sleep(pause),
                _ => return Ok(answer),
            }
        }
    }

    /// An answer that is no refusal.
    fn checked(&self, answer: Answer) -> Result<Answer, RemoteError> {
        if answer.status < 300 {
            return Ok(answer);
        }
        let place = self.place();
        let found = problem(&answer);
        let reason =
            found.as_ref().map_or_else(|| format!("HTTP {}", answer.status), |found| found.message.clone());
        let code = found.map(|found| found.code);
        Err(match (code, answer.status) {
            (Some(ProblemCode::Unauthorized), _) | (None, 401) => RemoteError::Unauthorized { place, reason },
            (Some(ProblemCode::Forbidden | ProblemCode::NotFound), _) | (None, 403 | 404) => {
                RemoteError::Forbidden { place, reason }
            }
            (Some(ProblemCode::Purged), _) => RemoteError::Purged,
            (Some(ProblemCode::Quota), _) => RemoteError::Quota { place, reason },
            (_, 429 | 500..=599) => RemoteError::Busy { place, reason, after: retry_after(&answer) },
            _ => RemoteError::Refused { place, reason },
        })
    }

    fn decode<T: DeserializeOwned>(&self, answer: Answer) -> Result<T, RemoteError> {
        let damaged =
            |error| RemoteError::Damaged(format!("{} answered something else: {error}", self.place()));
        serde_json::from_slice(&answer.body).map_err(damaged)
    }
}

impl HubRemote {
    /// Opens the space that the address names, or the personal one.
    pub fn open(address: &str, token: &str) -> Result<Self, RemoteError> {
        let (address, space) = match address.trim_end_matches('/').rsplit_once("/s/") {
            Some((address, space)) if !space.contains('/') => (address, Some(space.to_owned())),
            _ => (address, None),
        };
        let connection = HubConnection::new(address, Some(token))?;
        let space = if let Some(space) = space {
            space
        } else {
            let personal = connection.account()?.spaces.into_iter().next();
            let missing = || RemoteError::Damaged("the account has no space".to_owned());
            personal.ok_or_else(missing)?.id
        };
        Ok(Self { connection, space })
    }

    fn in_space<'path>(&'path self, rest: &[&'path str]) -> Vec<&'path str> {
        [&["v1", "s", self.space.as_str()], rest].concat()
    }

    /// An answer, or `None` if what it is about is absent.
    fn find<T: DeserializeOwned>(&self, path: &[&str], query: &str) -> Result<Option<T>, RemoteError> {
        let answer = self.connection.send(Method::GET, &self.in_space(path), query, b"", MOST)?;
        match answer.status {
            404 => Ok(None),
            _ => self.connection.decode(self.connection.checked(answer)?).map(Some),
        }
    }

    fn tell(&self, method: Method, path: &[&str], body: &[u8]) -> Result<(), RemoteError> {
        let answer = self.connection.send(method, &self.in_space(path), "", body, MOST)?;
        self.connection.checked(answer).map(drop)
    }

    /// Sends a line of JSON with the bytes that it is about. Large ones are uploaded first.
    fn push_bytes(
        &self,
        path: &[&str],
        line: &impl Serialize,
        bytes: &[u8],
    ) -> Result<PushOutcome, RemoteError> {
        let mut body = encode(line);
        body.push(b'\n');
        if bytes.len() as u64 <= INLINE_BYTES {
            body.extend_from_slice(bytes);
        } else {
            self.upload(BundleId::of(bytes), bytes)?;
        }
        let answer = self.connection.send(Method::POST, &self.in_space(path), "", &body, MOST)?;
        if problem(&answer).is_some_and(|problem| problem.code == ProblemCode::Moved) {
            return Ok(PushOutcome::Moved);
        }
        self.connection.checked(answer).map(|_| PushOutcome::Added)
    }

    fn upload(&self, id: BundleId, bytes: &[u8]) -> Result<(), RemoteError> {
        let name = id.to_string();
        let path = ["uploads", name.as_str()];
        let mut received = self.find::<UploadState>(&path, "")?.map_or(0, |state| state.received);
        while received < bytes.len() as u64 {
            let end = (received + PART_BYTES).min(bytes.len() as u64);
            let part = &bytes[received as usize..end as usize];
            let query = format!("at={received}&of={}", bytes.len());
            let answer = self.connection.send(Method::PATCH, &self.in_space(&path), &query, part, MOST)?;
            received = match problem(&answer) {
                Some(Problem { offset: Some(offset), .. })
                    if offset != received && offset <= bytes.len() as u64 =>
                {
                    offset
                }
                _ => self.connection.decode::<UploadState>(self.connection.checked(answer)?)?.received,
            };
        }
        Ok(())
    }

    fn fetch(&self, path: &[&str], id: BundleId) -> Result<Vec<u8>, RemoteError> {
        let answer = self.connection.send(Method::GET, &self.in_space(path), "", b"", MAX_UNPACKED)?;
        let bytes = self.connection.checked(answer)?.body;
        if BundleId::of(&bytes) != id {
            return Err(RemoteError::Damaged(format!("{id} does not have the content of its name")));
        }
        Ok(bytes)
    }

    /// The threads that this machine does not know in their newest form, when the feed cannot tell.
    fn everything(&self, seen: &Seen) -> Result<Feed, RemoteError> {
        let space: SpaceInfo = self.connection.get(&self.in_space(&[]), "")?;
        let known = |thread: &ThreadId| seen.heads.get(thread).copied().unwrap_or(0);
        let threads = self.threads()?.into_iter();
        let moved = threads.filter(|found| found.head.number > known(&found.thread));
        let events = moved.map(|found| FeedEvent::Moved(found.thread)).collect();
        Ok(Feed { cursor: Some(space.seq.to_string()), events })
    }
}

impl Remote for HubRemote {
    fn place(&self) -> String {
        self.connection.place()
    }

    fn threads(&self) -> Result<Vec<RemoteThread>, RemoteError> {
        let mut threads = Vec::new();
        let mut query = String::new();
        loop {
            let page: ThreadList = self.connection.get(&self.in_space(&["threads"]), &query)?;
            threads.extend(page.threads.into_iter().map(|found| RemoteThread {
                thread: found.thread,
                head: remote_head(found.last, &found.summary),
            }));
            match page.next {
                Some(next) => query = format!("after={next}"),
                None => return Ok(threads),
            }
        }
    }

    fn heads(&self, thread: ThreadId, mut after: u64) -> Result<Vec<RemoteHead>, RemoteError> {
        let name = thread.to_string();
        let mut heads = Vec::new();
        loop {
            let page = self.find::<BundleList>(&["t", &name, "log"], &format!("after={after}"))?;
            let Some(BundleList { bundles, summary, more }) = page else { return Ok(heads) };
            for row in bundles {
                if row.number != after + 1 || row.first == 0 || row.first > row.last {
                    return Err(RemoteError::Damaged(format!("the bundles of thread {thread} leave a gap")));
                }
                after = row.number;
                heads.push(remote_head(row, &summary));
            }
            if !more {
                return Ok(heads);
            }
        }
    }

    fn bundle(&self, thread: ThreadId, head: &RemoteHead) -> Result<Vec<u8>, RemoteError> {
        let (thread, number, id) = (thread.to_string(), head.number.to_string(), head.bundle.to_string());
        self.fetch(&["t", &thread, "b", &number, &id], head.bundle)
    }

    fn push(&self, thread: ThreadId, head: &RemoteHead, bundle: &[u8]) -> Result<PushOutcome, RemoteError> {
        let reader = crate::bundle::BundleReader::new(bundle, bundle.len() as u64);
        let previous = reader.map_err(|error| RemoteError::Damaged(error.to_string()))?.header().previous;
        let RemoteHead { number, first, last, head, bundle: id, bytes, summary } = head.clone();
        let RemoteSummary { title, project, updated, details } = summary;
        let request = PushRequest {
            row: BundleRow { number, first, last, head, bundle: id, bytes },
            previous,
            summary: ThreadSummary { title, project, updated, details },
        };
        self.push_bytes(&["t", &thread.to_string(), "push"], &request, bundle)
    }

    fn feed(&self, seen: &Seen, wait: Duration) -> Result<Feed, RemoteError> {
        let Some(after) = seen.cursor.as_deref().and_then(|cursor| cursor.parse::<u64>().ok()) else {
            return self.everything(seen);
        };
        let wait = wait.min(LONGEST_WAIT);
        let query = format!("after={after}&wait={}", wait.as_secs());
        let path = self.in_space(&["feed"]);
        let answer = self.connection.send_and_wait(Method::GET, &path, &query, b"", (MOST, wait))?;
        let feed: wire::Feed = self.connection.decode(self.connection.checked(answer)?)?;
        if feed.seq < after {
            // The hub was restored from an older copy.
            return self.everything(&Seen { cursor: None, ..seen.clone() });
        }
        let event = |event: &wire::FeedEvent| match event.what {
            wire::FeedKind::Moved => Some(FeedEvent::Moved(event.thread)),
            wire::FeedKind::Purged => Some(FeedEvent::Purged(event.thread)),
            wire::FeedKind::Redacted => Some(FeedEvent::Redacted(event.thread)),
            wire::FeedKind::Deleted | wire::FeedKind::Restored | wire::FeedKind::Unknown => None,
        };
        Ok(Feed {
            cursor: Some(feed.seq.to_string()),
            events: feed.events.iter().filter_map(event).collect(),
        })
    }

    fn purge(&self, thread: ThreadId) -> Result<(), RemoteError> {
        let thread = thread.to_string();
        let answer = self.connection.send(Method::DELETE, &self.in_space(&["t", &thread]), "", b"", MOST)?;
        match answer.status {
            // Nothing of it is there.
            404 | 410 => Ok(()),
            _ => self.connection.checked(answer).map(drop),
        }
    }

    fn redact(&self, thread: ThreadId, content: &[ContentId]) -> Result<(), RemoteError> {
        let request = RedactRequest { content: content.to_vec() };
        self.tell(Method::POST, &["t", &thread.to_string(), "redactions"], &encode(&request))
    }

    fn redactions(&self, thread: ThreadId) -> Result<Vec<ContentId>, RemoteError> {
        let found = self.find::<RedactionList>(&["t", &thread.to_string(), "redactions"], "")?;
        Ok(found.unwrap_or_default().content)
    }

    fn packs(&self, project: ProjectName, mut after: u64) -> Result<Vec<PackHead>, RemoteError> {
        let name = project.to_string();
        let mut packs = Vec::new();
        loop {
            let page = self.find::<PackList>(&["p", &name, "packs"], &format!("after={after}"))?;
            let page = page.unwrap_or_default();
            for PackRow { number, pack, bytes } in page.packs {
                after = number;
                packs.push(PackHead { number, pack, bytes });
            }
            if !page.more {
                return Ok(packs);
            }
        }
    }

    fn pack(&self, project: ProjectName, head: &PackHead) -> Result<Vec<u8>, RemoteError> {
        self.fetch(&["p", &project.to_string(), "packs", &head.number.to_string()], head.pack)
    }

    fn push_pack(
        &self,
        project: ProjectName,
        head: &PackHead,
        pack: &[u8],
    ) -> Result<PushOutcome, RemoteError> {
        let row = PackRow { number: head.number, pack: head.pack, bytes: head.bytes };
        self.push_bytes(&["p", &project.to_string(), "packs"], &row, pack)
    }
}

fn remote_head(row: BundleRow, summary: &ThreadSummary) -> RemoteHead {
    let BundleRow { number, first, last, head, bundle, bytes } = row;
    let ThreadSummary { title, project, updated, details } = summary.clone();
    let summary = RemoteSummary { title, project, updated, details };
    RemoteHead { number, first, last, head, bundle, bytes, summary }
}

fn problem(answer: &Answer) -> Option<Problem> {
    if answer.status < 300 { None } else { serde_json::from_slice(&answer.body).ok() }
}

fn retry_after(answer: &Answer) -> Option<Duration> {
    let seconds = answer.headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn encode(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("the types of the protocol have no maps with other keys than texts")
}
