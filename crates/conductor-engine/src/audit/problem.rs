//! Names what an audit can find wrong, each in one sentence for people.
//!
//! This module does not know how anything is found.

use conductor_domain::id::{EffectId, RunId};
use conductor_port::ledger::StreamId;
use serde::Serialize;

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "problem")]
pub enum Problem {
    /// The record is not what was written, or the one before it was rewritten.
    Changed {
        /// Where.
        stream: String,
        /// At which place.
        seq: u64,
    },
    /// Records are gone.
    Removed {
        /// Where.
        stream: String,
        /// From this place.
        from: u64,
        /// To this place.
        to: u64,
    },
    /// The record belongs at another place.
    Reordered {
        /// Where.
        stream: String,
        /// The place where it stands.
        seq: u64,
        /// What it calls itself.
        event_id: String,
    },
    /// The end is gone.
    Truncated {
        /// Where.
        stream: String,
        /// The last place there is.
        last: u64,
        /// The last place that there was, as far as is known.
        known: u64,
    },
    /// A whole run is gone.
    RunRemoved {
        /// Which.
        run: RunId,
    },
    /// The chain holds together, but it is not the one that was anchored.
    Rewritten {
        /// Where.
        stream: String,
        /// At the latest from this place.
        seq: u64,
    },
    /// The stream cannot be read at all.
    Unreadable {
        /// Which.
        stream: String,
        /// What was said.
        why: String,
    },
    /// The tool log of an invocation is not the one that the run's chain anchors (TOOL-4).
    ToolLogChanged {
        /// The invocation.
        invocation: EffectId,
    },
    /// The effect is not the one that the run's chain asked for; or it asked for none, or it is gone.
    EffectChanged {
        /// Which.
        effect: EffectId,
    },
    /// What is shown of a write at the forge is not what the records tell (GH-6).
    WriteChanged {
        /// The write's effect.
        effect: EffectId,
    },
    /// The kept bytes are not those of their address.
    BytesChanged {
        /// The address.
        address: String,
    },
    /// A run refers to bytes that are not kept.
    BytesRemoved {
        /// The run.
        run: RunId,
        /// The address.
        address: String,
    },
}

impl Problem {
    /// The name for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Changed { .. } => "changed",
            Self::Removed { .. } => "removed",
            Self::Reordered { .. } => "reordered",
            Self::Truncated { .. } => "truncated",
            Self::RunRemoved { .. } => "run_removed",
            Self::Rewritten { .. } => "rewritten",
            Self::Unreadable { .. } => "unreadable",
            Self::ToolLogChanged { .. } => "tool_log_changed",
            Self::EffectChanged { .. } => "effect_changed",
            Self::WriteChanged { .. } => "write_changed",
            Self::BytesChanged { .. } => "bytes_changed",
            Self::BytesRemoved { .. } => "bytes_removed",
        }
    }

    /// The stream that it concerns; bytes that several runs may share concern none.
    pub fn stream(&self) -> String {
        match self {
            Self::Changed { stream, .. }
            | Self::Removed { stream, .. }
            | Self::Reordered { stream, .. }
            | Self::Truncated { stream, .. }
            | Self::Rewritten { stream, .. }
            | Self::Unreadable { stream, .. } => stream.clone(),
            Self::RunRemoved { run } | Self::BytesRemoved { run, .. } => StreamId::Run(run.clone()).as_key(),
            Self::ToolLogChanged { invocation: effect }
            | Self::EffectChanged { effect }
            | Self::WriteChanged { effect } => StreamId::Run(effect.run()).as_key(),
            Self::BytesChanged { .. } => String::new(),
        }
    }

    /// The place in the stream, where there is one.
    pub fn seq(&self) -> Option<u64> {
        match self {
            Self::Changed { seq, .. }
            | Self::Removed { from: seq, .. }
            | Self::Reordered { seq, .. }
            | Self::Truncated { last: seq, .. }
            | Self::Rewritten { seq, .. } => Some(*seq),
            Self::RunRemoved { .. }
            | Self::Unreadable { .. }
            | Self::ToolLogChanged { .. }
            | Self::EffectChanged { .. }
            | Self::WriteChanged { .. }
            | Self::BytesChanged { .. }
            | Self::BytesRemoved { .. } => None,
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Changed { stream, seq } => write!(f, "{stream}: record {seq} was changed"),
            Self::Removed { stream, from, to } if from == to => {
                write!(f, "{stream}: record {from} was removed")
            }
            Self::Removed { stream, from, to } => write!(f, "{stream}: records {from} to {to} were removed"),
            Self::Reordered {
                stream,
                seq,
                event_id,
            } => write!(f, "{stream}: record {seq} was reordered; it is {event_id}"),
            Self::Truncated { stream, last, known } => {
                write!(
                    f,
                    "{stream}: truncated after record {last}; there were at least {known}"
                )
            }
            Self::RunRemoved { run } => write!(f, "run {run} was removed"),
            Self::Rewritten { stream, seq } => {
                write!(
                    f,
                    "{stream}: rewritten; record {seq} is not the one that was anchored"
                )
            }
            Self::Unreadable { stream, why } => write!(f, "{stream}: cannot be read: {why}"),
            Self::ToolLogChanged { invocation } => {
                write!(f, "the tool log of {invocation} is not the one that was anchored")
            }
            Self::EffectChanged { effect } => {
                write!(f, "the effect {effect} is not what the records asked for")
            }
            Self::WriteChanged { effect } => {
                write!(f, "the forge write of {effect} is not what the records tell")
            }
            Self::BytesChanged { address } => write!(f, "the bytes kept as {address} were changed"),
            Self::BytesRemoved { run, address } => {
                write!(f, "run {run} refers to bytes {address}, which are gone")
            }
        }
    }
}
