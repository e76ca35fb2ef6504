//! Why a plan, or one registration of it, cannot be made.

use std::fmt;

use crate::{error::Problem, wire::gson::GsonError};

/// What the properties lack, by field, beside what the Java client says to the same properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    problems: Vec<Problem>,
    java: Option<Exception>,
}

/// What Java throws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exception {
    Runtime(&'static str),
    IllegalArgument(&'static str),
    NumberFormat,
    NullPointer,
    StringIndexOutOfBounds,
}

impl PlanError {
    pub(super) fn new(problems: Vec<Problem>, java: Exception) -> Self {
        Self { problems, java: Some(java) }
    }

    pub(super) fn one(field: &'static str, text: impl Into<String>, java: Exception) -> Self {
        Self::new(vec![Problem::new(field, text)], java)
    }

    /// Ours alone: Java would have gone on.
    pub(super) fn ours(problems: Vec<Problem>) -> Self {
        Self { problems, java: None }
    }

    /// A body that is no JSON.
    pub(super) fn unwritable(error: GsonError) -> Self {
        Self::ours(vec![Problem::new("body", format!("write it as JSON: {error}"))])
    }

    /// What is wrong, by property, with the remedy.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Simple name of the exception that the Java client throws; `None` where it would not have noticed.
    #[must_use]
    pub fn java_exception(&self) -> Option<&'static str> {
        self.java.map(|exception| match exception {
            Exception::Runtime(_) => "RuntimeException",
            Exception::IllegalArgument(_) => "IllegalArgumentException",
            Exception::NumberFormat => "NumberFormatException",
            Exception::NullPointer => "NullPointerException",
            Exception::StringIndexOutOfBounds => "StringIndexOutOfBoundsException",
        })
    }

    /// The Java client's own words, by which people who know Soul find this error.
    #[must_use]
    pub fn java_message(&self) -> Option<&'static str> {
        match self.java? {
            Exception::Runtime(text) | Exception::IllegalArgument(text) => Some(text),
            Exception::NumberFormat | Exception::NullPointer | Exception::StringIndexOutOfBounds => None,
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            write!(f, "{}{problem}", if i == 0 { "" } else { "; " })?;
        }
        match self.java_message() {
            Some(java) => write!(f, " (in Java: {java})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for PlanError {}
