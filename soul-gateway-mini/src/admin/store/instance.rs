//! What instances say of themselves: that they listen, still do, or leave.

use super::{Change, InstanceEvent, Rejected, Report, Row, Store};
use crate::admin::register::{Node, plan_instance, selector_name};

impl Store {
    /// Takes what an instance says.
    ///
    /// One that leaves is gone with this change: it is in no handle, it is not probed, and a verdict of a probe that is
    /// under way says nothing of it. One that is not known has left already.
    ///
    /// # Errors
    /// When the selector takes no upstreams; when an instance that is not known beats, so that it registers again.
    pub(super) fn instance(&mut self, report: &Report, now_ms: i64) -> Result<Change, Rejected> {
        match report.event {
            InstanceEvent::Listens => self.listens(report, now_ms),
            InstanceEvent::Beats => self.beats(report),
            InstanceEvent::Leaves => self.leaves(report),
        }
    }

    fn listens(&mut self, report: &Report, now_ms: i64) -> Result<Change, Rejected> {
        let Report { service, body, protocol, revive, .. } = report;
        let mut ids = self.ids.clone();
        let planned = plan_instance(*service, body, protocol, self, &mut || self.unused_id(&mut ids, now_ms));
        let node = planned.node.clone();
        let mut change = self.carry_out(planned, ids, *revive)?;
        if let Some(node) = node {
            self.speaks(&node, protocol, &mut change);
        }
        Ok(change)
    }

    /// An instance that was known may come back with another protocol.
    fn speaks(&mut self, node: &Node, protocol: &str, change: &mut Change) {
        let Some(row) = self.selectors.by_name(&node.selector) else { return };
        let other = row.upstream(&node.url).filter(|known| known.entry.protocol.as_deref() != Some(protocol));
        let Some(place) = other.and_then(|_| self.selectors.place(row.id())) else { return };
        change.row(self.change_selector(place, |row| {
            if let Some(upstream) = row.upstream_mut(&node.url) {
                upstream.entry.protocol = Some(protocol.to_owned());
            }
        }));
    }

    fn beats(&mut self, report: &Report) -> Result<Change, Rejected> {
        let mut change = Change::default();
        if !report.service.has_nodes(report.dialect) {
            return Ok(change);
        }
        let node = node(report)?;
        let known =
            self.selectors.by_name(&node.selector).is_some_and(|row| row.upstream(&node.url).is_some());
        if !known {
            return Err(Rejected::NotFound { kind: "upstream", id: node.url });
        }
        self.hear_of(&node, report.revive, &mut change);
        Ok(change)
    }

    fn leaves(&mut self, report: &Report) -> Result<Change, Rejected> {
        let mut change = Change::default();
        let node = node(report)?;
        let Some(row) = self.selectors.by_name(&node.selector) else { return Ok(change) };
        if let (Some(_), Some(place)) = (row.upstream(&node.url), self.selectors.place(row.id())) {
            change.row(self.drop_upstream(place, &node.url));
        }
        Ok(change)
    }
}

fn node(report: &Report) -> Result<Node, Rejected> {
    let body = &report.body;
    let selector = selector_name(report.dialect, body)?.unwrap_or_default();
    let url = format!("{}:{}", body.host.as_deref().unwrap_or_default(), body.port.unwrap_or_default());
    Ok(Node { selector, url })
}
