//! Proof that Retake keeps its promises: harnesses that break the world around the real programs.
//!
//! A harness runs a program with a fault at every point where one can happen, or asks it a hundred thousand
//! random questions, and looks at what is left. Each has a control, a run in which the promise is broken on
//! purpose, because a harness that cannot fail proves nothing.
//!
//! | campaign | promise | control |
//! |---|---|---|
//! | [`faults`] | no fault at any system call loses what was acknowledged or leaves half a change | a disk whose syncs lie |
//! | [`files`] | the same while files move: conversation and files are before the command, or after it, together | files that move before anybody wrote it down |
//! | [`cuts`] | the same under real power cuts, on a file system of its own | syncs that lie |
//! | [`edits`] | after any moves, every file is what maps of path to content say | six small mistakes, one at a time |
//! | [`command_lines`] | any command line changes only the folder of its thread, nothing as a dry run or a failure, and reports what it changes | fifteen lies of the program, one at a time |
//! | [`crowd`] | two processes on one folder, some killed: all that was acknowledged is there | kills taken for answers |
//! | [`worktrees`] | two processes in two takes of one thread: each folder agrees with its take, and neither changes the other | undo in the wrong folder |
//! | [`restless`] | files that others rewrite and remove meanwhile are recorded whole and left alone | files replaced in place |
//! | [`model`] | every answer is the one that plain vectors and copies give | nineteen small mistakes, one at a time |
//! | [`processes`] | what any of eight processes was told is done stays done, in one serial order | a worker that says so before it is true |
//! | [`projection`] | every history, told to any provider, keeps that provider's rules, and bound thoughts stay where they were made | an encoder without care for pairs and order; thoughts sent after a change |
//! | [`turns`] | whole turns under failing servers, meddling people and kills: no orphan, nothing apart, nothing twice | three mistakes of a driver; syncs that lie |
//! | [`api`] fuzz | whatever is asked of the API, no answer is a 5xx, a panic or slow | four planted faults, one at a time |
//! | [`api`] kill | a server killed under load: what it acknowledged is there, each request once, the halves together | requests without an answer taken for done |
//! | [`flips`] | damaged bytes are noticed or harmless, never shown as if they were whole | a forged row that no check can notice |

pub mod api;
pub mod command_lines;
pub mod crowd;
pub mod cuts;
pub mod dice;
pub mod edits;
pub mod faults;
pub mod files;
pub mod flips;
pub mod folder;
pub mod ground;
pub mod model;
pub mod processes;
pub mod projection;
pub mod restless;
pub mod secrets;
pub mod shim;
pub mod turns;
pub mod violation;
pub mod worktrees;
