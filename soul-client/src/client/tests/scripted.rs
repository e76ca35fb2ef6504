//! A transport whose answers a test decides.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    error::{Error, Kind},
    plan::Dialect,
    transport::{Message, SendError, Transport},
};

/// What one call gets.
pub(super) enum Reply {
    Accept,
    AcceptAfter(Duration),
    Refuse,
    Silence,
    SilenceAfter(Duration),
    Hang,
    Panic,
}

/// One registration that was sent.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) admin: String,
    /// Path in the body; for an instance of ShenYu, what is said of it.
    pub(super) path: String,
    pub(super) began: Instant,
    /// `None` while it is under way, and for ever if it was given up.
    pub(super) ended: Option<Instant>,
}

type Script = Box<dyn FnMut(&Call) -> Reply + Send>;

struct Inner {
    script: Mutex<Script>,
    calls: Mutex<Vec<Call>>,
}

/// Plays a script, and keeps what was sent.
#[derive(Clone)]
pub(super) struct Scripted(Arc<Inner>);

impl Scripted {
    pub(super) fn new(script: impl FnMut(&Call) -> Reply + Send + 'static) -> Self {
        Self(Arc::new(Inner { script: Mutex::new(Box::new(script)), calls: Mutex::new(Vec::new()) }))
    }

    pub(super) fn play(&self, script: impl FnMut(&Call) -> Reply + Send + 'static) {
        *self.0.script.lock().unwrap() = Box::new(script);
    }

    pub(super) fn calls(&self) -> Vec<Call> {
        self.0.calls.lock().unwrap().clone()
    }

    /// What was sent since the last time.
    pub(super) fn take(&self) -> Vec<Call> {
        std::mem::take(&mut *self.0.calls.lock().unwrap())
    }

    /// `admin/path` of each.
    pub(super) fn take_names(&self) -> Vec<String> {
        self.take().into_iter().map(|call| format!("{}{}", call.admin, call.path)).collect()
    }
}

impl Transport for Scripted {
    async fn detect(&self, _: &str) -> Result<Dialect, SendError> {
        Ok(Dialect::Any)
    }

    async fn send(&self, admin: &str, message: Message) -> Result<(), SendError> {
        let body: serde_json::Value = serde_json::from_str(&message.body).unwrap();
        let (member, endpoints) = match body.get("eventType") {
            Some(_) => ("eventType", &["/shenyu-client/register-uri", "/shenyu-client/offline"][..]),
            None => ("path", &["/soul-client/springmvc-register", "/shenyu-client/register-metadata"][..]),
        };
        assert!(endpoints.contains(&message.endpoint), "{message:?}");
        let path = body[member].as_str().unwrap().trim_start_matches("/http").to_owned();
        let admin = admin.trim_start_matches("http://").to_owned();
        let call = Call { admin, path, began: Instant::now(), ended: None };
        let reply = self.0.script.lock().unwrap()(&call);
        let number = {
            let mut calls = self.0.calls.lock().unwrap();
            calls.push(call);
            calls.len() - 1
        };
        let error = |kind| Arc::new(Error::new(kind, "scripted"));
        let result = match reply {
            Reply::Accept => Ok(()),
            Reply::AcceptAfter(time) => {
                tokio::time::sleep(time).await;
                Ok(())
            }
            Reply::Refuse => Err(SendError::Refused(error(Kind::Rejected))),
            Reply::Silence => Err(SendError::Unanswered(error(Kind::Connect))),
            Reply::SilenceAfter(time) => {
                tokio::time::sleep(time).await;
                Err(SendError::Unanswered(error(Kind::Timeout)))
            }
            Reply::Hang => std::future::pending().await,
            Reply::Panic => panic!("scripted panic: this one is expected"),
        };
        if let Some(call) = self.0.calls.lock().unwrap().get_mut(number) {
            call.ended = Some(Instant::now());
        }
        result
    }
}
