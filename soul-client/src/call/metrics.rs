//! What calls count, for whichever recorder the program has (feature `metrics`).
//!
//! As for the client's own numbers, the program chooses the exporter; a recorder must be installed before the first call, and [`describe`]
//! tells it what the names mean. Every factory counts by itself.
//!
//! | name | kind | labels | says |
//! |---|---|---|---|
//! | [`soul_client_calls_total`](CALLS) | counter | `service`, `result` | calls: `answered`, or why there was no answer |
//! | [`soul_client_call_duration_seconds`](DURATION) | histogram | `service` | time to the head of the answer, or to the error |
//! | [`soul_client_call_attempts_total`](ATTEMPTS) | counter | `service` | requests sent |
//! | [`soul_client_call_attempts_failed_total`](FAILED) | counter | `service`, `reason` | those that failed: `refused`, `timed_out`, `broken`, `invalid`, `status` |
//! | [`soul_client_call_retries_total`](RETRIES) | counter | `service`, `to` | further attempts, to the `same` upstream or an `other` |
//! | [`soul_client_call_upstreams`](UPSTREAMS) | gauge | `service` | upstreams on the list |
//! | [`soul_client_call_ejections_total`](EJECTIONS) | counter | `service` | upstreams left out because requests failed |
//! | [`soul_client_call_panic`](PANIC) | gauge | `service` | 1 while health is not heeded |
//!
//! Upstreams are no label: they come and go, and a series for each would stay.

use ::metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

use super::{CallErrorKind, CallEvent, CallListener, Failed, MemberEvent, MemberListener};

/// Calls by what came of them.
pub const CALLS: &str = "soul_client_calls_total";
/// How long calls take.
pub const DURATION: &str = "soul_client_call_duration_seconds";
/// Requests sent.
pub const ATTEMPTS: &str = "soul_client_call_attempts_total";
/// Requests that failed.
pub const FAILED: &str = "soul_client_call_attempts_failed_total";
/// Further attempts.
pub const RETRIES: &str = "soul_client_call_retries_total";
/// Upstreams on the list.
pub const UPSTREAMS: &str = "soul_client_call_upstreams";
/// Upstreams that were left out.
pub const EJECTIONS: &str = "soul_client_call_ejections_total";
/// Whether health is not heeded.
pub const PANIC: &str = "soul_client_call_panic";

/// Tells the recorder of the program what each name means.
pub fn describe() {
    for (name, text) in [
        (CALLS, "Calls to services by what came of them."),
        (ATTEMPTS, "Requests sent to upstreams."),
        (FAILED, "Requests that failed, by how."),
        (RETRIES, "Further attempts after a failure."),
        (EJECTIONS, "Upstreams left out because requests failed."),
    ] {
        describe_counter!(name, Unit::Count, text);
    }
    describe_histogram!(
        DURATION,
        Unit::Seconds,
        "Time to the head of the answer of a call, or to its error."
    );
    describe_gauge!(UPSTREAMS, Unit::Count, "Upstreams on the list of a service.");
    describe_gauge!(PANIC, Unit::Count, "1 while health is not heeded, since too few are healthy.");
}

/// Listens and counts.
pub(super) struct Meter;

impl CallListener for Meter {
    fn on_call(&self, service: &str, event: &CallEvent<'_>) {
        let service = service.to_owned();
        match event {
            CallEvent::Started => {}
            CallEvent::Sending { .. } => counter!(ATTEMPTS, "service" => service).increment(1),
            CallEvent::Failed { failed, .. } => {
                counter!(FAILED, "service" => service, "reason" => reason(*failed)).increment(1);
            }
            CallEvent::Retrying { same, .. } => {
                let to = if *same { "same" } else { "other" };
                counter!(RETRIES, "service" => service, "to" => to).increment(1);
            }
            CallEvent::Succeeded { elapsed, .. } => {
                histogram!(DURATION, "service" => service.clone()).record(elapsed.as_secs_f64());
                counter!(CALLS, "service" => service, "result" => "answered").increment(1);
            }
            CallEvent::Exhausted { kind, elapsed, .. } => {
                histogram!(DURATION, "service" => service.clone()).record(elapsed.as_secs_f64());
                counter!(CALLS, "service" => service, "result" => result(*kind)).increment(1);
            }
        }
    }
}

impl MemberListener for Meter {
    fn on_event(&self, service: &str, event: &MemberEvent) {
        let service = service.to_owned();
        match event {
            #[allow(clippy::cast_precision_loss)]
            MemberEvent::ListChanged { total, .. } => {
                gauge!(UPSTREAMS, "service" => service).set(*total as f64);
            }
            MemberEvent::Ejected { .. } => counter!(EJECTIONS, "service" => service).increment(1),
            MemberEvent::Panic { on } => gauge!(PANIC, "service" => service).set(f64::from(u8::from(*on))),
            _ => {}
        }
    }
}

fn reason(failed: Option<Failed>) -> &'static str {
    match failed {
        None => "status",
        Some(Failed::Refused) => "refused",
        Some(Failed::TimedOut) => "timed_out",
        Some(Failed::Broken) => "broken",
        Some(Failed::Invalid) => "invalid",
    }
}

fn result(kind: CallErrorKind) -> &'static str {
    match kind {
        CallErrorKind::NoInstance => "no_instance",
        CallErrorKind::AllTried => "all_tried",
        CallErrorKind::NotRepeatable => "not_repeatable",
        CallErrorKind::BodyNotReplayable => "body_not_replayable",
        CallErrorKind::BudgetExhausted => "budget_exhausted",
        CallErrorKind::DeadlineExceeded => "deadline_exceeded",
        CallErrorKind::Body => "body",
        CallErrorKind::UnknownService => "unknown_service",
        CallErrorKind::InvalidUri => "invalid_uri",
        CallErrorKind::InvalidRequest => "invalid_request",
        CallErrorKind::Config => "config",
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        sync::{Arc, Mutex, atomic::AtomicU64},
        time::Duration,
    };

    use ::metrics::{
        Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, with_local_recorder,
    };

    use super::*;

    /// Keeps the counters.
    #[derive(Default)]
    struct Kept(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

    impl Recorder for Kept {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            let labels: Vec<_> = key.labels().map(|l| format!("{}={}", l.key(), l.value())).collect();
            let name = format!("{}{{{}}}", key.name(), labels.join(","));
            Counter::from_arc(Arc::clone(self.0.lock().unwrap().entry(name).or_default()))
        }

        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::from_arc(Arc::clone(self.0.lock().unwrap().entry(key.name().to_owned()).or_default()))
        }

        fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::noop()
        }
    }

    #[test]
    fn a_call_is_counted_by_attempt_and_by_its_end() {
        let kept = Kept::default();
        let elapsed = Duration::from_millis(7);
        with_local_recorder(&kept, || {
            describe();
            let upstream = "http://a:1";
            for event in [
                CallEvent::Started,
                CallEvent::Sending { upstream, attempt: 1 },
                CallEvent::Failed {
                    upstream,
                    attempt: 1,
                    failed: Some(Failed::Refused),
                    status: None,
                    elapsed,
                },
                CallEvent::Retrying { attempt: 2, same: false, pause: elapsed },
                CallEvent::Sending { upstream, attempt: 2 },
                CallEvent::Failed { upstream, attempt: 2, failed: None, status: Some(503), elapsed },
                CallEvent::Exhausted { kind: CallErrorKind::AllTried, attempts: 2, elapsed },
            ] {
                Meter.on_call("orders", &event);
            }
            Meter.on_call("orders", &CallEvent::Succeeded { upstream, attempts: 1, status: None, elapsed });
            Meter.on_event("orders", &MemberEvent::Panic { on: true });
        });
        let values = kept.0.lock().unwrap();
        let value = |name: &str| values[name].load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(value("soul_client_call_attempts_total{service=orders}"), 2);
        assert_eq!(value("soul_client_call_attempts_failed_total{service=orders,reason=refused}"), 1);
        assert_eq!(value("soul_client_call_attempts_failed_total{service=orders,reason=status}"), 1);
        assert_eq!(value("soul_client_call_retries_total{service=orders,to=other}"), 1);
        assert_eq!(value("soul_client_calls_total{service=orders,result=all_tried}"), 1);
        assert_eq!(value("soul_client_calls_total{service=orders,result=answered}"), 1);
        assert_eq!(f64::from_bits(value("soul_client_call_panic")), 1.0);
    }
}
