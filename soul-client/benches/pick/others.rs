//! What others offer in Rust. `tests/peers/pingora` has the one that needs more crates than all of ours.

use std::{
    hint::black_box,
    task::{Context, Poll, Waker},
    time::Duration,
};

use tower::{
    Service, ServiceExt,
    balance::p2c::Balance,
    buffer::Buffer,
    discover::ServiceList,
    load::{CompleteOnResponse, Load, PeakEwma, PendingRequests},
};

use crate::{common::addresses, keys::Keys, table::Table};

pub(crate) const TOWER: &str = "tower Balance, peak EWMA, ready + call";
pub(crate) const BUFFERED: &str = "tower Balance, peak EWMA, behind Buffer";

pub(crate) fn add(table: &mut Table) {
    table.add("pingora-ketama node (no snapshot, no health)", |stopwatch, size| {
        let bucket = |a: &String| Some(pingora_ketama::Bucket::new(a.parse().ok()?, 1));
        let buckets: Option<Vec<_>> = addresses(0, size).iter().map(bucket).collect();
        let ring = pingora_ketama::Continuum::new(&buckets?);
        let mut keys = Keys::new();
        Some(stopwatch.time(|| {
            black_box(ring.node(keys.next().as_bytes()));
        }))
    });
    table.add("tower Balance, pending requests, ready + call", |stopwatch, size| {
        let wrap = || PendingRequests::new(Instantly, CompleteOnResponse::default());
        let list = ServiceList::new::<u32>((0..size).map(|_| wrap()).collect::<Vec<_>>());
        let mut balance = Balance::new(list);
        Some(stopwatch.time(|| ready_and_call(&mut balance)))
    });
    table.add(TOWER, |stopwatch, size| {
        let mut balance = Balance::new(by_ewma(size));
        Some(stopwatch.time(|| ready_and_call(&mut balance)))
    });
    table.add(BUFFERED, |stopwatch, size| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().ok()?;
        let mut buffer = runtime.block_on(async { Buffer::new(Balance::new(by_ewma(size)), 1_024) });
        // Entering the runtime costs too, so many calls at a time.
        const CALLS: u32 = 64;
        let all = stopwatch.time(|| {
            runtime.block_on(async {
                for _ in 0..CALLS {
                    if let Ok(ready) = buffer.ready().await {
                        black_box(ready.call(1).await.ok());
                    }
                }
            });
        });
        Some(all / f64::from(CALLS))
    });
    table.add("tower PeakEwma::load alone", |stopwatch, _| {
        let service = measured();
        let load: &PeakEwma<Instantly> = &service;
        Some(stopwatch.time(|| {
            black_box(Load::load(load));
        }))
    });
}

/// A service that is always ready and answers at once.
#[derive(Clone)]
struct Instantly;

impl Service<u32> for Instantly {
    type Response = u32;
    type Error = std::convert::Infallible;
    type Future = std::future::Ready<Result<u32, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: u32) -> Self::Future {
        std::future::ready(Ok(request))
    }
}

fn ready_and_call<S: Service<u32, Future: Unpin>>(service: &mut S) {
    let mut context = Context::from_waker(Waker::noop());
    let ready = service.poll_ready(&mut context);
    assert!(ready.is_ready(), "a service that is always ready");
    let mut answer = Box::pin(service.call(1));
    black_box(answer.as_mut().poll(&mut context)).is_ready();
}

fn measured() -> PeakEwma<Instantly> {
    PeakEwma::new(Instantly, Duration::from_millis(30), 1e10, CompleteOnResponse::default())
}

fn by_ewma(size: usize) -> ServiceList<Vec<PeakEwma<Instantly>>> {
    ServiceList::new::<u32>((0..size).map(|_| measured()).collect())
}
