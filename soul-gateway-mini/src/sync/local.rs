//! The admin in the same process: its images arrive by a watch channel, without HTTP.

use std::{array, future, sync::Arc};

use tokio::{sync::watch, task};

use super::{HeldGroup, Learned, Source, SyncError, Update};
use crate::{
    model::{ConfigImage, GroupData, GroupImage, Row, address, places},
    slices::{self, sliced},
};

/// Follows the admin of this process.
pub(crate) struct Local {
    images: watch::Receiver<Arc<ConfigImage>>,
    seen: Option<Seen>,
    /// Whether there is an image that was not looked at to the end.
    behind: bool,
    gone: bool,
}

/// What was seen last: each group as the admin has it, and packed.
#[derive(Clone)]
struct Seen([(Arc<GroupImage>, HeldGroup); 5]);

impl Local {
    pub(crate) fn new(images: watch::Receiver<Arc<ConfigImage>>) -> Self {
        Self { images, seen: None, behind: true, gone: false }
    }

    /// Packs what the admin has now, aside: large groups take a while.
    async fn look(&mut self) -> Result<Update, SyncError> {
        let image = Arc::clone(&self.images.borrow_and_update());
        let before = self.seen.clone();
        let looked = task::spawn_blocking(move || {
            let first = before.is_none();
            let look = || look(&image, before);
            // Before the first configuration there are no requests to be kept waiting.
            let (seen, changed) = if first { look() } else { sliced(look) };
            (seen, changed, first)
        });
        let (seen, changed, first) = match looked.await {
            Ok(looked) => looked,
            Err(source) => return Err(SyncError::Interrupted { admin: self.describe(), source }),
        };
        self.seen = Some(seen);
        self.behind = false;
        Ok(match changed {
            all if first => Update::Refresh(all),
            none if none.is_empty() => Update::Unchanged,
            some => Update::Groups(some),
        })
    }
}

impl Source for Local {
    fn describe(&self) -> String {
        "the admin in this process".to_owned()
    }

    async fn next(&mut self) -> Result<Update, SyncError> {
        if self.gone {
            // Said once; the gateway keeps serving what it has until it is stopped.
            future::pending::<()>().await;
        }
        if !self.behind && self.images.changed().await.is_err() {
            self.gone = true;
            return Err(SyncError::LocalAdminGone);
        }
        self.behind = true;
        self.look().await
    }
}

/// The image, packed, and which groups changed: all if nothing was seen before.
fn look(image: &ConfigImage, before: Option<Seen>) -> (Seen, Vec<Learned>) {
    let mut changed = Vec::new();
    let seen = array::from_fn(|at| {
        let group = &image.groups[at];
        let before = before.as_ref().map(|seen| &seen.0[at]);
        if let Some((image, held)) = before.filter(|(image, _)| image.md5 == group.md5) {
            return (Arc::clone(image), held.clone());
        }
        let held = held(&group.data, before.map(|(image, held)| (&*image.data, held)));
        changed.push(Learned { data: held.clone(), refused: Vec::new() });
        (Arc::clone(group), held)
    });
    before.into_iter().flat_map(|seen| seen.0).for_each(|(image, _)| let_go(image));
    (Seen(seen), changed)
}

/// Frees what the admin has replaced, row by row, if nobody else holds it any more.
fn let_go(image: Arc<GroupImage>) {
    fn rows<D>(rows: Vec<Arc<D>>) {
        for row in rows {
            slices::step();
            drop(row);
        }
    }
    match Arc::into_inner(image).and_then(|image| Arc::into_inner(image.data)) {
        Some(GroupData::Rule(list)) => rows(list),
        Some(GroupData::Selector(list)) => rows(list),
        Some(GroupData::MetaData(list)) => rows(list),
        Some(GroupData::AppAuth(_) | GroupData::Plugin(_)) | None => {}
    }
}

/// A group in packed rows; those of `before` where the admin's row is the very same.
fn held(data: &GroupData, before: Option<(&GroupData, &HeldGroup)>) -> HeldGroup {
    match (data, before) {
        (GroupData::AppAuth(list), _) => HeldGroup::AppAuth(list.as_slice().into()),
        (GroupData::Plugin(list), _) => HeldGroup::Plugin(list.as_slice().into()),
        (GroupData::Rule(now), Some((GroupData::Rule(old), HeldGroup::Rule(held)))) => {
            HeldGroup::Rule(packed(now, old, held))
        }
        (GroupData::Rule(now), _) => HeldGroup::Rule(packed(now, &[], &[])),
        (GroupData::Selector(now), Some((GroupData::Selector(old), HeldGroup::Selector(held)))) => {
            HeldGroup::Selector(packed(now, old, held))
        }
        (GroupData::Selector(now), _) => HeldGroup::Selector(packed(now, &[], &[])),
        (GroupData::MetaData(now), Some((GroupData::MetaData(old), HeldGroup::MetaData(held)))) => {
            HeldGroup::MetaData(packed(now, old, held))
        }
        (GroupData::MetaData(now), _) => HeldGroup::MetaData(packed(now, &[], &[])),
    }
}

fn packed<D>(now: &[Arc<D>], old: &[Arc<D>], held: &[Row<D>]) -> Arc<[Row<D>]>
where
    Row<D>: for<'d> From<&'d D>,
{
    let addresses = |rows: &[Arc<D>]| -> Vec<usize> { rows.iter().map(address).collect() };
    let row = |(row, place): (&Arc<D>, Option<usize>)| {
        place.and_then(|place| held.get(place)).map_or_else(|| Row::from(&**row), Row::clone)
    };
    now.iter().zip(places(&addresses(old), &addresses(now))).map(row).collect()
}

#[cfg(test)]
mod tests {
    use soul_client::wire::soul::{PluginData, RuleData};

    use super::*;

    fn image(revision: u64, plugin: &str) -> Arc<ConfigImage> {
        let group = |data, md5: &str| {
            Arc::new(GroupImage {
                data: Arc::new(data),
                json: Arc::default(),
                md5: md5.to_owned(),
                last_modify_time: 0,
            })
        };
        let plugins = vec![PluginData { name: Some(plugin.to_owned()), ..PluginData::default() }];
        Arc::new(ConfigImage {
            revision,
            groups: [
                group(GroupData::AppAuth(vec![]), "-"),
                group(GroupData::Plugin(plugins), plugin),
                group(GroupData::Rule(vec![]), "-"),
                group(GroupData::Selector(vec![]), "-"),
                group(GroupData::MetaData(vec![]), "-"),
            ],
        })
    }

    #[tokio::test]
    async fn first_everything_then_only_what_changed() {
        let (sender, receiver) = watch::channel(image(1, "divide"));
        let mut local = Local::new(receiver);
        let Update::Refresh(all) = local.next().await.unwrap() else { panic!("a refresh first") };
        assert_eq!(all.len(), 5);

        sender.send(image(2, "divide")).unwrap();
        assert_eq!(local.next().await.unwrap(), Update::Unchanged);

        sender.send(image(3, "waf")).unwrap();
        let Update::Groups(groups) = local.next().await.unwrap() else { panic!("one group") };
        let [Learned { data, .. }] = &groups[..] else { panic!("{groups:?}") };
        let HeldGroup::Plugin(plugins) = data else { panic!("{groups:?}") };
        assert_eq!(plugins[0].name.as_deref(), Some("waf"));

        drop(sender);
        assert!(matches!(local.next().await, Err(SyncError::LocalAdminGone)));
    }

    #[test]
    fn a_row_that_the_admin_left_alone_stays_the_same() {
        let rule = |id: &str| Arc::new(RuleData { id: Some(id.to_owned()), ..RuleData::default() });
        let old = [rule("a"), rule("b"), rule("c")];
        let held = packed(&old, &[], &[]);
        let now = [Arc::clone(&old[2]), rule("b"), Arc::clone(&old[0])];
        let next = packed(&now, &old, &held);
        let same = |one: usize, other: usize| next[one].address() == held[other].address();
        assert!(same(0, 2) && same(2, 0));
        assert!(!same(1, 1) && next[1] == held[1]);
    }
}
