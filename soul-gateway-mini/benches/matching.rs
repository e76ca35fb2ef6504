//! What it costs to find the selector and the rule of a request.
//!
//! `cargo bench -p soul-gateway-mini --bench matching` prints nanoseconds a request at 10, 1,000 and 100,000 rules:
//! for the first rule, the last, none, and random ones, whose memory is cold at 100,000. The targets are 300 ns at
//! 10 rules and 1 µs at 100,000. What counts is the quickest of many rounds: the others are what the machine did
//! besides. Beside it stands one look into a hash map of as many paths, in the same moment. It fails clearly beyond, where both
//! the nanoseconds are one and a half times the target and the ratio is above 12, and if anything is allocated.
//!
//! Rules are literal paths, `/**`, `*` and `{id}`, and paths that many share, told apart by a header or by the
//! caller's address; in one selector, or in one for each hundred.

use std::{collections::HashMap, env, hint::black_box, process::ExitCode, time::Instant};

use http::{HeaderMap, HeaderName, HeaderValue};
use soul_client::wire::soul::{ConditionData, RuleData, SelectorData};
use soul_gateway_mini::model::{
    Row,
    matching::{Invalids, PluginTable, RequestView},
};

/// Rules, and most nanoseconds a request may take.
const TARGETS: [(usize, f64); 3] = [(10, 300.0), (1_000, 1_000.0), (100_000, 1_000.0)];
/// Rules of a selector where there is more than one.
const RULES_OF_SELECTOR: usize = 100;
/// Requests that are gone through in turn.
const REQUESTS: usize = 4_096;
/// Rounds, of which the quickest counts.
const ROUNDS: usize = 41;
/// By how much the target may be missed before it fails, and how many looks into a hash map it then may take.
const TOLERANCE: (f64, f64) = (1.5, 12.0);
const TENANT: HeaderName = HeaderName::from_static("x-tenant");

type Table = PluginTable<(), ()>;

fn main() -> ExitCode {
    // `cargo test --benches` runs this too, without the flag.
    if !env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    println!(
        "{:>8} {:>10} {:>7} {:>7} {:>7} {:>7} {:>8} {:>6} {:>7}  met",
        "rules", "selectors", "case", "ns", "target", "median", "hash map", "ratio", "allocs"
    );
    let mut passed = true;
    for (rules, target) in TARGETS {
        for selectors in [1, rules.div_ceil(RULES_OF_SELECTOR)]
            .into_iter()
            .take(if rules > RULES_OF_SELECTOR { 2 } else { 1 })
        {
            passed &= measure(rules, selectors, target);
        }
    }
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn measure(rules: usize, selectors: usize, target: f64) -> bool {
    let table = table(rules, selectors);
    let random: Vec<usize> = (0..REQUESTS).map(|_| fastrand::usize(..rules)).collect();
    let cases: [(&str, Vec<Request>); 4] = [
        ("first", vec![Request::of(0, rules, selectors)]),
        ("last", vec![Request::of(rules - 1, rules, selectors)]),
        (
            "miss",
            vec![Request {
                path: format!("/svc{}/none/of/them", selectors - 1),
                ..Request::of(0, rules, selectors)
            }],
        ),
        ("random", random.iter().map(|rule| Request::of(*rule, rules, selectors)).collect()),
    ];
    let paths: HashMap<String, usize> =
        (0..rules).map(|rule| (Request::of(rule, rules, selectors).path + &rule.to_string(), rule)).collect();
    let mut passed = true;
    for (case, requests) in cases {
        let found = requests.iter().filter(|request| request.is_served_by(&table)).count();
        assert_eq!(found, if case == "miss" { 0 } else { requests.len() }, "{case}");
        let [(quickest, median, allocations), (look, ..)] = [
            time(&requests, |request| request.find(&table).is_some()),
            time(&requests, |request| paths.contains_key(&request.key)),
        ];
        let (met, ratio) = (quickest <= target, quickest / look);
        passed &= allocations == 0 && (quickest <= target * TOLERANCE.0 || ratio <= TOLERANCE.1);
        println!(
            "{rules:>8} {selectors:>10} {case:>7} {quickest:>7.0} {target:>7.0} {median:>7.0} {look:>8.0} {ratio:>6.1} {allocations:>7}  {}",
            if met { "yes" } else { "NO" }
        );
    }
    passed
}

/// Shortest and median time of a request over the rounds, in nanoseconds, and allocations of one round.
fn time(requests: &[Request], find: impl Fn(&Request) -> bool) -> (f64, f64, u64) {
    let turns = (REQUESTS / requests.len()).max(1);
    let round = || {
        for _ in 0..turns {
            for request in requests {
                black_box(find(black_box(request)));
            }
        }
    };
    round();
    let allocations = allocation_counter::measure(round).count_total;
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            round();
            start.elapsed().as_secs_f64() * 1e9 / (turns * requests.len()) as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    (rounds[0], rounds[ROUNDS / 2], allocations)
}

/// A request, and the id of the rule that is to serve it.
struct Request {
    path: String,
    headers: HeaderMap,
    peer: [u8; 4],
    rule: String,
    /// In the hash map.
    key: String,
}

impl Request {
    fn of(rule: usize, rules: usize, selectors: usize) -> Self {
        let service = service(rule, rules, selectors);
        let path = match rule % 10 {
            0..4 => format!("/svc{service}/res{rule}/list"),
            4 | 5 => format!("/svc{service}/res{rule}/some/thing/below"),
            6 => format!("/svc{service}/res{rule}/any"),
            7 => format!("/svc{service}/res{rule}/4711/detail"),
            _ => format!("/svc{service}/shared/by/many"),
        };
        let mut headers = HeaderMap::new();
        for name in ["host", "user-agent", "accept", "accept-encoding", "x-request-id"] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static("some value or other"));
        }
        if rule % 10 == 8 {
            headers
                .insert(TENANT, HeaderValue::from_str(&format!("t{rule}")).expect("OK because it is ASCII"));
        }
        let peer = if rule % 10 == 9 { address(rule) } else { [127, 0, 0, 1] };
        let key = path.clone() + &rule.to_string();
        Self { path, headers, peer, rule: rule.to_string(), key }
    }

    fn find<'t>(&self, table: &'t Table) -> Option<&'t str> {
        let view = RequestView::new("GET", &self.path, None, &self.headers, self.peer.into());
        let selector = table.select(&view).ok()??;
        selector.rule(&view).ok()?.map(|rule| rule.id())
    }

    fn is_served_by(&self, table: &Table) -> bool {
        let found = self.find(table);
        assert!(
            found.is_none_or(|rule| rule == self.rule),
            "{found:?} instead of {} for {}",
            self.rule,
            self.path
        );
        found.is_some()
    }
}

fn service(rule: usize, rules: usize, selectors: usize) -> usize {
    rule * selectors / rules
}

fn address(rule: usize) -> [u8; 4] {
    let bytes = u32::try_from(rule).expect("OK because there are few").to_be_bytes();
    [10, bytes[1], bytes[2], bytes[3]]
}

fn table(rules: usize, selectors: usize) -> Table {
    let selectors_data: Vec<_> = (0..selectors)
        .map(|service| {
            Row::from(&SelectorData {
                id: Some(service.to_string()),
                plugin_name: Some("divide".to_owned()),
                match_mode: Some(0),
                kind: Some(1),
                sort: Some(1),
                enabled: Some(true),
                condition_list: Some(vec![condition("uri", "match", "/", format!("/svc{service}/**"))]),
                ..SelectorData::default()
            })
        })
        .collect();
    let rules: Vec<_> =
        (0..rules).map(|rule| Row::from(&rule_data(rule, service(rule, rules, selectors)))).collect();
    let start = Instant::now();
    let (table, refused) = Table::compile(
        "divide",
        &selectors_data,
        &rules,
        Invalids::Refuse,
        None,
        |_, _| Ok(()),
        |_, _| Ok(()),
    );
    assert!(refused.is_empty(), "{refused:?}");
    println!("{:>8} {selectors:>10} compiled in {:.1?}", rules.len(), start.elapsed());
    table
}

fn rule_data(rule: usize, service: usize) -> RuleData {
    let path = match rule % 10 {
        0..4 => format!("/svc{service}/res{rule}/list"),
        4 | 5 => format!("/svc{service}/res{rule}/**"),
        6 => format!("/svc{service}/res{rule}/*"),
        7 => format!("/svc{service}/res{rule}/{{id}}/detail"),
        _ => format!("/svc{service}/shared/**"),
    };
    let mut conditions = vec![condition("uri", "match", "/", path)];
    match rule % 10 {
        8 => conditions.push(condition("header", "=", "x-tenant", format!("t{rule}"))),
        9 => {
            conditions.push(condition("host", "=", "", address(rule).map(|byte| byte.to_string()).join(".")))
        }
        _ => {}
    }
    RuleData {
        id: Some(rule.to_string()),
        plugin_name: Some("divide".to_owned()),
        selector_id: Some(service.to_string()),
        match_mode: Some(0),
        sort: Some(1),
        enabled: Some(true),
        handle: Some("{}".to_owned()),
        condition_data_list: Some(conditions),
        ..RuleData::default()
    }
}

fn condition(param_type: &str, operator: &str, name: &str, value: String) -> Option<ConditionData> {
    Some(ConditionData {
        param_type: Some(param_type.to_owned()),
        operator: Some(operator.to_owned()),
        param_name: Some(name.to_owned()),
        param_value: Some(value),
    })
}
