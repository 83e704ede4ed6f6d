//! Events of what a run knows: notes, plan, artifacts, errors.

use minicbor::{Decode, Encode};

use crate::ids::Ordinal;
use crate::value::ValueRef;

/// See [`Event::NoteTaken`](super::Event::NoteTaken).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct NoteTaken {
    /// The note.
    #[n(0)]
    pub key: String,
    /// Its text; `None` removes it.
    #[n(1)]
    pub text: Option<ValueRef>,
}

/// What shows that a milestone was reached.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// An action with an outcome.
    #[n(0)]
    Action(#[n(0)] Ordinal),
    /// A version of an artifact.
    #[n(1)]
    Artifact(#[n(0)] String, #[n(1)] u32),
    /// The model's word.
    #[n(2)]
    Declared,
}

/// See [`Event::MilestoneMarked`](super::Event::MilestoneMarked).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct MilestoneMarked {
    /// The milestone; a new one is added to the plan.
    #[n(0)]
    pub id: String,
    /// What it means, when it is new.
    #[n(1)]
    pub title: Option<ValueRef>,
    /// The evidence; `None` opens it again.
    #[n(2)]
    pub reached: Option<Evidence>,
}

/// See [`Event::ArtifactSaved`](super::Event::ArtifactSaved).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct ArtifactSaved {
    /// The artifact's name.
    #[n(0)]
    pub name: String,
    /// Its version, from 1.
    #[n(1)]
    pub version: u32,
    /// Its bytes.
    #[n(2)]
    pub content: ValueRef,
}

/// See [`Event::ArtifactShown`](super::Event::ArtifactShown).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct ArtifactShown {
    /// The artifact's name.
    #[n(0)]
    pub name: String,
    /// True from now on, false no longer.
    #[n(1)]
    pub open: bool,
}

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, serde::Serialize)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// A call of the model brought no answer.
    #[n(0)]
    Model,
    /// A reply, or a call in it, was refused.
    #[n(1)]
    Reply,
    /// A tool failed or could not be reached.
    #[n(2)]
    Tool,
    /// An outcome is unknown.
    #[n(3)]
    Doubt,
    /// A quota has no room.
    #[n(4)]
    Quota,
    /// The worker crashed.
    #[n(5)]
    Crash,
}

/// See [`Event::ErrorLogged`](super::Event::ErrorLogged).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct ErrorLogged {
    /// Its kind.
    #[n(0)]
    pub kind: ErrorKind,
    /// The action it belongs to.
    #[n(1)]
    pub ordinal: Option<Ordinal>,
    /// What was said.
    #[n(2)]
    pub text: ValueRef,
}

/// See [`Event::FinishRefused`](super::Event::FinishRefused).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct FinishRefused {
    /// The action that wanted to finish.
    #[n(0)]
    pub ordinal: Ordinal,
}

/// See [`Event::CheckStarted`](super::Event::CheckStarted).
#[derive(Clone, Debug, PartialEq, Encode, Decode, serde::Serialize)]
pub struct CheckStarted {
    /// The action that wants to finish; from now on it is performed as any other that may be repeated.
    #[n(0)]
    pub ordinal: Ordinal,
}
