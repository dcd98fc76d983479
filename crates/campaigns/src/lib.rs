//! Campaigns that test Retake's guarantees: harnesses that inject faults around the real programs.
//!
//! A harness runs a program with a fault at every possible point, or sends it many random requests, and checks the
//! result. Each has a control, in which a guarantee is broken on purpose, because a harness that cannot fail proves
//! nothing.
//!
//! | campaign | guarantee | control |
//! |---|---|---|
//! | [`faults`] | no fault at any system call loses acknowledged changes or leaves a partial one | a disk whose syncs do nothing |
//! | [`files`] | while files move, conversation and files are both before or both after the command | files that move before the intent is durable |
//! | [`power_cuts`] | the same under real power cuts, on a separate file system | syncs that do nothing |
//! | [`edits`] | after any moves, every file matches a map of path to content | model faults, one at a time |
//! | [`command_lines`] | a command changes only the folder of its thread, nothing as a dry run or a failure, and reports its changes | program faults, one at a time |
//! | [`exchange`] | two machines exchange a thread: conversation and files of each operation agree, nothing is lost, private threads stay | four faults, one at a time |
//! | [`mod@sync`] | machines that share a folder or a failing bucket end with one log, nothing is lost, private threads stay | two faults, one at a time |
//! | [`concurrent_processes`] | two processes on one folder, some killed: everything acknowledged exists | kills counted as acknowledged |
//! | [`worktrees`] | two processes in two takes of one thread: each folder agrees with its take | undo in the wrong folder |
//! | [`concurrent_writers`] | files that others change concurrently are recorded consistently and not overwritten | files replaced in place |
//! | [`model`] | every answer equals that of a simple reference model | model faults, one at a time |
//! | [`processes`] | operations acknowledged by any of eight processes are durable and serial | a worker that acknowledges before it writes |
//! | [`projection`] | every history, projected for any provider, satisfies the provider's rules | an encoder without care for pairs and order |
//! | [`hostile`] | whatever a model server sends, a turn ends in bounded time and memory | a redirect that is followed, a limit of 1 MiB |
//! | [`turns`] | turns under failing servers, concurrent changes and kills: no orphans, consistent files, no call twice | six driver faults; syncs that do nothing |
//! | [`api`] fuzz | no request causes a 5xx, a panic or a slow answer | four injected faults, one at a time |
//! | [`api`] kill | a server killed under load: acknowledged changes exist, each request executed once | unanswered requests counted as executed |
//! | [`hub`] tenants | every route with every id of another account answers as if it did not exist | a member, who sees it |
//! | [`hub`] history, kill, failover | concurrent pushes are linearizable; nothing acknowledged is lost when hub or database are killed | get, compare and put; an answer before the write |
//! | [`flips`] | damaged bytes are detected or harmless, never shown as valid content | a forged row that no check can detect |

pub mod api;
pub mod command_lines;
pub mod concurrent_processes;
pub mod concurrent_writers;
pub mod edits;
pub mod exchange;
pub mod faults;
pub mod files;
pub mod flips;
pub mod folder;
pub mod hostile;
pub mod hub;
pub mod model;
pub mod power_cuts;
pub mod processes;
pub mod projection;
pub mod rng;
pub mod scratch;
pub mod secrets;
pub mod shim;
pub mod sync;
pub mod turns;
pub mod violation;
pub mod worktrees;
