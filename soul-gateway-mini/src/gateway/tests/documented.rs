//! What `API.md` says that a gateway reports.

use super::{
    peers::{Upstream, get},
    setup::{Running, config, handle, rule, service},
};
use crate::documented::{check_fields, check_metrics};

#[tokio::test]
async fn the_page_lists_every_metric_and_field_of_a_gateway() {
    let upstream = Upstream::named("one").await;
    let mut data = service(&[upstream.address], &handle("random", 0, 3000));
    data.rules.push(rule("divide", "/http", "/http/none/**", &handle("none that there is", 0, 3000)));
    let running = Running::with(config(), &data).await;
    for path in ["/http/x", "/nobody"] {
        get(running.address(), path).await;
    }
    check_fields("Status of a gateway", &running.status().await);
    let metrics = get(running.gateway.status_addr(), "/metrics").await;
    check_metrics("Metrics of a gateway", &metrics.text());
}
