//! Reading what an operator sends: every field by name and type, and nothing that is unknown.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};
use url::form_urlencoded;

use super::reply::{Failure, Page};
use crate::admin::problem::Problem;

/// Words for Soul's codes; either is understood.
pub(super) type Codes = [(&'static str, i32)];

/// The fields of a JSON object, taken one by one. What is left at the end is unknown.
#[derive(Debug)]
pub(super) struct Fields {
    map: Map<String, Value>,
    known: Vec<&'static str>,
    problems: Vec<Problem>,
    taken: usize,
}

impl Fields {
    pub(super) fn new(map: Map<String, Value>) -> Self {
        Self { map, known: Vec::new(), problems: Vec::new(), taken: 0 }
    }

    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        let value = self.map.remove(name)?;
        self.taken += 1;
        Some(value)
    }

    /// A problem of a field.
    pub(super) fn refuse(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    fn wrong<T>(&mut self, name: &str, why: impl Into<String>) -> Option<T> {
        self.refuse(Problem::new(name, why));
        None
    }

    /// True or false.
    pub(super) fn flag(&mut self, name: &'static str) -> Option<bool> {
        match self.take(name)? {
            Value::Bool(flag) => Some(flag),
            other => self.wrong(name, format!("must be true or false, not `{other}`")),
        }
    }

    /// Any text.
    pub(super) fn text(&mut self, name: &'static str) -> Option<String> {
        match self.take(name)? {
            Value::String(text) => Some(text),
            other => self.wrong(name, format!("must be a text, not `{other}`")),
        }
    }

    /// A text that is not empty.
    pub(super) fn name(&mut self, name: &'static str) -> Option<String> {
        match self.text(name)? {
            text if text.trim().is_empty() => self.wrong(name, "must not be empty"),
            text => Some(text),
        }
    }

    /// A whole number.
    pub(super) fn number(&mut self, name: &'static str, range: RangeInclusive<i32>) -> Option<i32> {
        let value = self.take(name)?;
        let number = value.as_i64().and_then(|number| i32::try_from(number).ok());
        match number.filter(|number| range.contains(number)) {
            None => {
                let (from, to) = (range.start(), range.end());
                self.wrong(name, format!("must be a whole number from {from} to {to}, not `{value}`"))
            }
            number => number,
        }
    }

    /// One of several words, or the code it stands for.
    pub(super) fn code(&mut self, name: &'static str, codes: &Codes) -> Option<i32> {
        let value = self.take(name)?;
        let found = codes.iter().find(|(word, code)| match &value {
            Value::String(text) => text == word,
            other => other.as_i64() == Some(i64::from(*code)),
        });
        if let Some((_, code)) = found {
            return Some(*code);
        }
        let words: Vec<&str> = codes.iter().map(|(word, _)| *word).collect();
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.refuse(Problem::not_one_of(name, &shown, &words));
        None
    }

    /// Objects, each read by a function that names its problems from the object.
    pub(super) fn objects<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&mut Fields) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Value::Array(list) = self.take(name)? else { return self.wrong(name, "must be a list") };
        let mut items = Vec::new();
        for (at, value) in list.into_iter().enumerate() {
            let place = format!("{name}[{at}]");
            let Value::Object(map) = value else {
                self.refuse(Problem::new(place, "must be an object"));
                continue;
            };
            let mut fields = Self::new(map);
            items.extend(read(&mut fields));
            let problems = fields.end();
            self.problems.extend(problems.into_iter().map(|problem| problem.inside(&place)));
        }
        Some(items)
    }

    /// The problem of a field that must be there.
    pub(super) fn need<T>(&mut self, name: &str, value: Option<T>) -> Option<T> {
        let reported = self.problems.iter().any(|problem| problem.field == name);
        if value.is_none() && !reported {
            self.refuse(Problem::new(name, "is missing"));
        }
        value
    }

    /// Every problem, unknown fields among them.
    fn end(mut self) -> Vec<Problem> {
        for name in self.map.keys() {
            let mut problem = Problem::new(name.clone(), "is no field of this");
            problem.allowed = self.known.iter().map(|known| (*known).to_owned()).collect();
            self.problems.push(problem);
        }
        self.problems
    }

    /// Fails if anything was wrong.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let problems = self.end();
        if problems.is_empty() { Ok(()) } else { Err(Failure::invalid(problems)) }
    }

    /// As [`Self::finish`], and fails if the object was empty.
    pub(super) fn finish_patch(self) -> Result<(), Failure> {
        if self.taken == 0 && self.map.is_empty() {
            let mut problem = Problem::new("body", "says nothing to change");
            problem.allowed = self.known.iter().map(|known| (*known).to_owned()).collect();
            return Err(Failure::invalid(vec![problem]));
        }
        self.finish()
    }
}

/// The parameters of a list: `offset`, `limit`, and filters by name.
///
/// # Errors
/// For a parameter that is unknown or malformed.
pub(super) fn query<const N: usize>(
    query: Option<&str>,
    filters: [&'static str; N],
) -> Result<(Page, [Option<String>; N]), Failure> {
    let mut page = Page { offset: 0, limit: usize::MAX };
    let mut values = filters.map(|_| None);
    let mut problems = Vec::new();
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let number = value.parse::<usize>();
        match (name.as_ref(), number) {
            ("offset", Ok(number)) => page.offset = number,
            ("limit", Ok(number)) => page.limit = number,
            ("offset" | "limit", Err(_)) => {
                problems.push(Problem::new(name, format!("must be a number of rows, not `{value}`")));
            }
            (name, _) => match filters.iter().position(|filter| *filter == name) {
                Some(at) => values[at] = Some(value.into_owned()),
                None => {
                    let mut problem = Problem::new(name, "is no parameter of this list");
                    problem.allowed =
                        filters.iter().chain(&["offset", "limit"]).map(|&f| f.to_owned()).collect();
                    problems.push(problem);
                }
            },
        }
    }
    if problems.is_empty() { Ok((page, values)) } else { Err(Failure::invalid(problems)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(json: Value, read: impl Fn(&mut Fields)) -> Vec<String> {
        let Value::Object(map) = json else { panic!("no object") };
        let mut fields = Fields::new(map);
        read(&mut fields);
        fields.end().iter().map(Problem::to_string).collect()
    }

    #[test]
    fn every_problem_names_its_field_and_what_is_allowed() {
        let json = serde_json::json!({
            "enabled": "yes", "sort": 1.5, "matchMode": "xor", "list": [{"a": 1, "b": 2}], "extra": null,
        });
        let found = problems(json, |fields| {
            fields.flag("enabled");
            fields.number("sort", 0..=9);
            fields.code("matchMode", &[("and", 0), ("or", 1)]);
            fields.objects("list", |item| item.text("a"));
        });
        assert_eq!(
            found,
            [
                "`enabled`: must be true or false, not `\"yes\"`",
                "`sort`: must be a whole number from 0 to 9, not `1.5`",
                "`matchMode`: unknown value `xor`, expected one of `and`, `or`",
                "`list[0].a`: must be a text, not `1`",
                "`list[0].b`: is no field of this, expected one of `a`",
                "`extra`: is no field of this, expected one of `enabled`, `sort`, `matchMode`, `list`",
            ]
        );
    }

    #[test]
    fn codes_are_words_or_numbers() {
        for value in [serde_json::json!("or"), serde_json::json!(1)] {
            let mut fields = Fields::new(Map::from_iter([("mode".to_owned(), value)]));
            assert_eq!(fields.code("mode", &[("and", 0), ("or", 1)]), Some(1));
        }
    }

    #[test]
    fn lists_know_their_parameters() {
        let (page, [plugin]) = query(Some("limit=5&plugin=divide"), ["plugin"]).unwrap();
        assert_eq!((page.offset, page.limit, plugin.as_deref()), (0, 5, Some("divide")));
        let failure = query(Some("plugins=divide&limit=x"), ["plugin"]).unwrap_err();
        assert_eq!(failure.status, 400);
    }
}
