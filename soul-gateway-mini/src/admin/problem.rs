//! What is wrong with an input, field by field.

use std::fmt;

use serde::Serialize;
use soul_client::wire::soul::ConditionData;

use crate::model::matching::Condition;

/// One field that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Name of the field as the sender wrote it, for example `conditions[0].operator`.
    pub field: String,
    /// What is wrong.
    pub problem: String,
    /// What may stand there, if that is a list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
}

impl Problem {
    /// A problem without a list of what is allowed.
    pub(crate) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into(), allowed: Vec::new() }
    }

    /// A value outside a list.
    pub(crate) fn not_one_of<T: AsRef<str>>(field: impl Into<String>, value: &str, allowed: &[T]) -> Self {
        Self {
            field: field.into(),
            problem: format!("unknown value `{value}`"),
            allowed: allowed.iter().map(|name| name.as_ref().to_owned()).collect(),
        }
    }

    /// What keeps a gateway from using a condition.
    pub(crate) fn of_condition(condition: &ConditionData) -> Option<Self> {
        let compiled = Condition::compile(Some(condition));
        let error = compiled.problem()?;
        Some(Self::new(error.condition_field().unwrap_or("condition"), error.to_string()))
    }

    /// The problem of a field of a part, seen from the whole.
    pub(crate) fn inside(mut self, part: &str) -> Self {
        self.field = format!("{part}.{}", self.field);
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.field, self.problem)?;
        for (at, name) in self.allowed.iter().enumerate() {
            write!(f, "{}`{name}`", if at == 0 { ", expected one of " } else { ", " })?;
        }
        Ok(())
    }
}

/// Problems in one sentence each, the first first.
pub(crate) fn sentence(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("; ")
}
