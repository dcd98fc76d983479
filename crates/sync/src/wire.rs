//! The types of the HTTP protocol between a device and a hub, which both ends share.
//!
//! ```text
//!   POST /v1/s/{space}/t/{thread}/push     a [`PushRequest`] as one line of JSON, then the bytes of the bundle
//!     200 [`Pushed`]                       it is the last bundle now, and durable
//!     409 [`Problem`] `moved`              another device was first, or this very push arrived before
//!   GET  /v1/s/{space}/t/{thread}/log      a [`BundleList`]; then GET …/b/{number}/{name} for the bytes
//!   GET  /v1/s/{space}/feed?after=N&wait=S a [`Feed`], as soon as something happens
//! ```
//!
//! Fields that a program does not know are ignored, so that newer ones can be added. A thread is always named together
//! with its space, and a bundle with its thread: a hash alone is never enough.

use retake_model::content::ContentId;
use retake_model::id::ThreadId;
use retake_model::operation::Version;
use serde::{Deserialize, Serialize};

use crate::bundle::BundleId;
use crate::remote::ProjectKey;

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;
/// The most bytes of a bundle that may come with a push; a larger one is uploaded before it.
pub const INLINE_BYTES: u64 = 1 << 20;
/// The most bytes of one part of an upload.
pub const PART_BYTES: u64 = 4 << 20;
/// The most bytes of the JSON line of a push.
pub const LINE_BYTES: u64 = 256 << 10;
/// The most bytes of the text of a thread that a hub indexes.
pub const TEXT_BYTES: usize = 16 << 10;

/// What a hub is: `GET /v1/hub`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubInfo {
    /// The version of the protocol.
    pub protocol: u32,
    /// The newest format of bundles.
    pub bundle_format: u8,
    /// The largest bundle.
    pub bundle_bytes: u64,
    /// What it can do beyond the first version of the protocol.
    pub capabilities: Vec<String>,
}

/// Why a hub refused, in words and as a code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The code.
    pub code: ProblemCode,
    /// What happened, why, and what to do next.
    pub message: String,
    /// The end of the thread, with `moved`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<ThreadHead>,
    /// The number of bytes received, with `offset`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
}

/// The codes of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemCode {
    /// 400: the request is malformed.
    Invalid,
    /// 401: no token, or one that is revoked.
    Unauthorized,
    /// 403: the role of the account does not allow it.
    Forbidden,
    /// 404: absent, or not for this account.
    NotFound,
    /// 409: the thread has another head.
    Moved,
    /// 409: an upload continues at another offset.
    Offset,
    /// 409: the name exists.
    Exists,
    /// 410: the thread was purged.
    Purged,
    /// 413: the quota of the space is used up.
    Quota,
    /// 413: the request is too large.
    TooLarge,
    /// 422: the hub does not take this bundle.
    Refused,
    /// 428: a login waits for its approval.
    Pending,
    /// 429: too many requests.
    TooMany,
    /// 503: try again later.
    Unavailable,
    /// A code of a newer hub.
    #[serde(other)]
    Unknown,
}

/// The end of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadHead {
    /// The number of its last bundle.
    pub number: u64,
    /// The version of its last operation.
    pub version: Version,
    /// The id of its last operation.
    pub head: ContentId,
}

/// What comes with each push, for lists and searches. It is replaced as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadSummary {
    /// The title.
    pub title: String,
    /// The project.
    pub project: ProjectKey,
    /// Time of the last operation, in milliseconds since 1970.
    pub updated: i64,
    /// What searches find it by.
    pub details: ThreadDetails,
}

/// What searches find a thread by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadDetails {
    /// The tags.
    pub tags: Vec<String>,
    /// The git branches that operations recorded.
    pub branches: Vec<String>,
    /// The git commits that operations recorded.
    pub commits: Vec<String>,
    /// The directories, relative to the home folder or the project.
    pub directories: Vec<String>,
    /// The state of the agent.
    pub agent_state: String,
    /// The number of messages of the active take.
    pub messages: u64,
    /// The text of the last messages, at most [`TEXT_BYTES`].
    pub text: String,
}

/// One bundle in the row of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleRow {
    /// Its position, from 1.
    pub number: u64,
    /// The version of its first operation.
    pub first: Version,
    /// The version of its last operation.
    pub last: Version,
    /// The id of its last operation.
    pub head: ContentId,
    /// Its name.
    pub bundle: BundleId,
    /// Its size.
    pub bytes: u64,
}

/// The line before the bytes of a push. Without bytes, the bundle was uploaded before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushRequest {
    /// The bundle. Its number follows that of the last one.
    pub row: BundleRow,
    /// The id of the last operation before it; `None` for a new thread.
    pub previous: Option<ContentId>,
    /// What lists show.
    pub summary: ThreadSummary,
}

/// A push that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pushed {
    /// Its position in the feed of the space.
    pub seq: u64,
}

/// The bundles of a thread: `GET …/log?after=NUMBER`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleList {
    /// The bundles, in order.
    pub bundles: Vec<BundleRow>,
    /// What lists show.
    pub summary: ThreadSummary,
    /// Whether there are more.
    pub more: bool,
}

/// A thread in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadRow {
    /// The thread.
    pub thread: ThreadId,
    /// Its last bundle.
    pub last: BundleRow,
    /// The name of the account that created it.
    pub owner: String,
    /// Size of its bundles.
    pub bytes: u64,
    /// When it was deleted, in milliseconds since 1970. It can be restored.
    pub deleted: Option<i64>,
    /// What lists show, without text.
    pub summary: ThreadSummary,
}

/// Threads of a space: a list, or what a search found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadList {
    /// The threads, the one that changed last first.
    pub threads: Vec<ThreadRow>,
    /// Where the next page begins.
    pub next: Option<String>,
}

/// What a thread matches. All conditions hold; empty ones match everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchQuery {
    /// Words of text or title; each is the beginning of a word there.
    pub text: Option<String>,
    /// A part of the title.
    pub title: Option<String>,
    /// A tag.
    pub tag: Option<String>,
    /// A git remote, or the end of one.
    pub repository: Option<String>,
    /// A git branch.
    pub branch: Option<String>,
    /// The beginning of a git commit.
    pub commit: Option<String>,
    /// A directory.
    pub directory: Option<String>,
    /// The name of the account that created it.
    pub person: Option<String>,
    /// The state of the agent.
    pub agent_state: Option<String>,
    /// At least so many messages.
    pub min_messages: Option<u64>,
    /// At most so many messages.
    pub max_messages: Option<u64>,
    /// Also deleted threads.
    pub deleted: Option<bool>,
    /// Where the page begins: `next` of the one before.
    pub after: Option<String>,
    /// At most so many.
    pub limit: Option<u64>,
}

/// What happened in a space, in order and without gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feed {
    /// The events.
    pub events: Vec<FeedEvent>,
    /// The position after them.
    pub seq: u64,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedEvent {
    /// Its position.
    pub seq: u64,
    /// The thread.
    pub thread: ThreadId,
    /// What happened.
    pub what: FeedKind,
}

/// What happened to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedKind {
    /// It has a new bundle.
    Moved,
    /// It was deleted, and can be restored.
    Deleted,
    /// It was restored.
    Restored,
    /// It was purged: nothing of it is left.
    Purged,
    /// Content was redacted, and bundles were replaced.
    Redacted,
    /// An event of a newer hub.
    #[serde(other)]
    Unknown,
}

/// Starts a login: `POST /v1/auth/device`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginRequest {
    /// The name of the device.
    pub name: String,
}

/// A login that waits for its approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginStarted {
    /// The secret with which the device asks.
    pub device_code: String,
    /// The code that a person types on a device that is logged in.
    pub user_code: String,
    /// Seconds between two questions.
    pub interval: u64,
    /// Seconds until the code expires.
    pub expires_in: u64,
}

/// Asks whether a login was approved: `POST /v1/auth/token`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRequest {
    /// The secret of [`LoginStarted`].
    pub device_code: String,
}

/// A login that was approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedIn {
    /// The token of the device. The hub stores its hash.
    pub token: String,
    /// The device.
    pub device: String,
    /// The name of the account.
    pub account: String,
}

/// Approves a login: `POST /v1/auth/approve`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApproveRequest {
    /// The code that the other device shows.
    pub user_code: String,
}

/// The calling account: `GET /v1/account`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountInfo {
    /// The name of the account.
    pub account: String,
    /// This device.
    pub device: String,
    /// The spaces that it may use; the personal one first.
    pub spaces: Vec<SpaceInfo>,
}

/// A device of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// The id.
    pub id: String,
    /// The name.
    pub name: String,
    /// When it logged in, in milliseconds since 1970.
    pub created: i64,
    /// When it was last seen, to the hour.
    pub last_seen: i64,
    /// When its token was revoked.
    pub revoked: Option<i64>,
}

/// A space: a person's, or an organization's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpaceInfo {
    /// The id.
    pub id: String,
    /// Whose it is.
    pub kind: SpaceKind,
    /// The name.
    pub name: String,
    /// The role of this account.
    pub role: Role,
    /// The most bytes that it may have.
    pub quota: u64,
    /// The bytes that it has.
    pub bytes: u64,
    /// The position of its feed.
    pub seq: u64,
}

/// Whose space it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpaceKind {
    /// One account's.
    Personal,
    /// Its members see all its threads.
    Organization,
}

/// What a member of a space may do. A later role may do everything that an earlier one may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads threads.
    Reader,
    /// Also changes threads.
    Member,
    /// Also manages members, and purges the threads of others.
    Owner,
}

/// Creates an organization: `POST /v1/spaces`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewSpace {
    /// The name.
    pub name: String,
}

/// A member of a space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberInfo {
    /// The name of the account.
    pub account: String,
    /// The role.
    pub role: Role,
}

/// Sets the role of a member: `PUT /v1/s/{space}/members/{account}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetRole {
    /// The role.
    pub role: Role,
}

/// Deletes or restores a thread: `PATCH /v1/s/{space}/t/{thread}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadChange {
    /// Whether it is deleted. A deleted thread can be restored.
    pub deleted: bool,
}

/// Destroys content of a thread on the hub: `POST /v1/s/{space}/t/{thread}/redactions`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedactRequest {
    /// The ids of the content.
    pub content: Vec<ContentId>,
}

/// Content of a thread that no device may bring back: `GET …/redactions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedactionList {
    /// The ids of the content.
    pub content: Vec<ContentId>,
}

/// What an upload has: `PATCH …/uploads/{name}?at=OFFSET&of=BYTES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadState {
    /// The bytes received.
    pub received: u64,
    /// Whether that is all of it.
    pub complete: bool,
}

/// One pack of a project's files, in order: a line before its bytes at `POST /v1/s/{space}/p/{project}/packs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackRow {
    /// Its position, from 1.
    pub number: u64,
    /// Its name.
    pub pack: BundleId,
    /// Its size.
    pub bytes: u64,
}

/// The packs of a project: `GET /v1/s/{space}/p/{project}/packs?after=NUMBER`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackList {
    /// The packs.
    pub packs: Vec<PackRow>,
    /// Whether there are more.
    pub more: bool,
}

/// Shares one take at one version: `POST /v1/s/{space}/t/{thread}/links`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewLink {
    /// The name of the take.
    pub take: String,
    /// The version.
    pub version: Version,
    /// Days until it expires.
    pub days: u32,
    /// What it shows. The device has searched it for secrets.
    pub page: SharedPage,
}

/// What a link shows: text, which the hub turns into a page without scripts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedPage {
    /// The title of the thread.
    pub title: String,
    /// The messages.
    pub entries: Vec<SharedEntry>,
}

/// A message on a shared page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedEntry {
    /// Who said it.
    pub role: String,
    /// The text.
    pub text: String,
}

/// A link that was created; the token is shown once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCreated {
    /// The id, with which it is revoked.
    pub id: String,
    /// The path on the hub.
    pub path: String,
    /// When it expires, in milliseconds since 1970.
    pub expires: i64,
}

/// A link of this account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkInfo {
    /// The id.
    pub id: String,
    /// The space.
    pub space: String,
    /// The thread.
    pub thread: ThreadId,
    /// The name of the take.
    pub take: String,
    /// The version.
    pub version: Version,
    /// The title.
    pub title: String,
    /// When it was created, in milliseconds since 1970.
    pub created: i64,
    /// When it expires.
    pub expires: i64,
    /// When it was revoked.
    pub revoked: Option<i64>,
}

/// Lets support read a thread for some days: `PUT …/support`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupportGrant {
    /// Days, at most 31.
    pub days: u32,
}

/// One line of the audit log of a space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRow {
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// The name of the account.
    pub account: String,
    /// The device.
    pub device: String,
    /// What was done.
    pub action: String,
    /// To what.
    pub subject: String,
}
