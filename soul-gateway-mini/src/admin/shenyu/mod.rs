//! The door for clients of Apache ShenYu, 2.4.0 to 2.7.1 (ShenYu specification, sections 1, 2, 3.3 and 8).
//!
//! | path | answer | module |
//! |---|---|---|
//! | `/platform/login` | a token | `login`, `token` |
//! | `/shenyu-client/register-metadata` | a route is registered | `endpoint`, `body` |
//! | `/shenyu-client/register-uri`, `/offline` | an instance listens, still does, or leaves | `endpoint`, `body` |
//! | `/shenyu-client/*-register` | the one message of 2.4.0, which is Soul's | `register` |
//! | `/shenyu-client/register-apiDoc`, `-discoveryConfig`, `/instance/beat` | taken, and nothing follows | `endpoint` |
//!
//! What is registered goes the way of Soul's registrations: one command, one plan, one store. `access` asks for the
//! token where one is needed. Answers have ShenYu's form: `success`, or status 200 with its JSON of an error.

mod access;
mod body;
mod endpoint;
mod login;
mod token;

pub(crate) use endpoint::routes;
