//! What stands in the log: the first failure, then rarely, then the recovery.

use std::{
    fmt::{Debug, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::Instant;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use super::{
    LISTENER, builder, config,
    scripted::{Reply, Scripted},
};
use crate::Dialect;

const SECOND: Duration = Duration::from_secs(1);

/// Lines of the level `info` and above.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            write!(self.message, "{value:?}").unwrap();
        } else {
            write!(self.fields, " {}={value:?}", field.name()).unwrap();
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target().starts_with("soul_client")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let text = format!("{} {}{}", event.metadata().level(), line.message, line.fields);
        self.0.lock().unwrap().push(text);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

impl Log {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

// The log is that of this thread, on which everything of this test runs.
#[tokio::test(start_paused = true)]
async fn failures_are_logged_first_then_rarely_then_the_recovery() {
    // With a second one alive, an event that another test's thread is the first to reach is not switched off for all.
    let _second = tracing::Dispatch::new(Log::default());
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let begin = Instant::now();
    let transport =
        Scripted::new(move |_| if begin.elapsed() < 3600 * SECOND { Reply::Silence } else { Reply::Accept });
    let client = builder(config().admin_url("http://one"))
        .start_over(transport.clone(), fastrand::Rng::with_seed(7), LISTENER)
        .unwrap();
    client.registered_within(5000 * SECOND).await.unwrap();
    tokio::task::yield_now().await;

    let lines = log.take();
    assert!(lines[0].starts_with("INFO registering with the soul admin"), "{lines:#?}");
    assert!(
        lines[0].contains("address=10.0.0.2:8188") && lines[0].contains("because=configured"),
        "{lines:#?}"
    );
    let (failures, others): (Vec<_>, Vec<_>) =
        lines.iter().partition(|line| line.starts_with("WARN not registered: scripted"));
    // Of some 160 rounds in an hour.
    let rounds = [1, 2, 4, 8, 16, 32, 64, 128].map(|number| format!(" rounds={number} "));
    assert_eq!(failures.len(), rounds.len(), "{lines:#?}");
    for (line, rounds) in failures.iter().zip(rounds) {
        assert!(line.contains(&rounds) && line.contains("admins=\"http://one\""), "{line}: {rounds}");
        assert!(line.contains("retry_in="), "{line}");
    }
    let [_, recovery] = others[..] else { panic!("{others:#?}") };
    assert!(recovery.starts_with("INFO registered after failures routes=4 admin=\"http://one\" rounds=1"));

    // What is repeated is not worth a line, and another failure begins anew.
    tokio::time::sleep(300 * SECOND).await;
    assert_eq!(log.take(), Vec::<String>::new());
    transport.play(|_| Reply::Refuse);
    tokio::time::sleep(40 * SECOND).await;
    let lines = log.take();
    assert!(
        lines[0].starts_with("WARN not registered: scripted") && lines[0].contains(" rounds=1 "),
        "{lines:#?}"
    );
    client.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn admin_that_answers_questions_and_takes_nothing_for_an_hour_is_told_of_rarely() {
    let _second = tracing::Dispatch::new(Log::default());
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let transport = Scripted::new(|_| Reply::Silence);
    let client = builder(config().admin_url("http://one").admin_url("http://two").dialect(Dialect::Auto))
        .start_over(transport, fastrand::Rng::with_seed(7), LISTENER)
        .unwrap();
    tokio::time::sleep(3600 * SECOND).await;
    let lines = log.take();
    for admin in ["one", "two"] {
        let of = |what: &str| lines.iter().filter(|line| line.contains(admin) && line.contains(what)).count();
        let told = [of("found out"), of("registering with"), of("not registered"), of("")];
        assert_eq!(told, [1, 1, 8, 10], "{lines:#?}");
    }
    client.shutdown().await;
}
