//! What gateways get: the image of the configuration, made anew where something changed.
//!
//! A change renders its groups once; every poll, every fetch and the gateway of the same process share that text.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};
use soul_client::wire::{
    gson::{self, GsonError},
    soul::{AppAuthData, ConfigGroup, MetaData, PluginData, RuleData, SelectorData},
};
use tokio::sync::{OnceCell, watch};

use super::{render::Rendering, store::Store};
use crate::model::{ConfigImage, DataEvent, GroupData, GroupImage};

/// Number of groups.
const GROUPS: usize = ConfigGroup::ALL.len();

/// One published state: the rows, and what is made of them.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    /// The rows.
    pub(crate) store: Arc<Store>,
    /// The groups as gateways compare them.
    pub(crate) image: Arc<ConfigImage>,
    /// What of `image` need not be written again.
    rendering: Rendering,
    /// The groups as `/configs/fetch` gives them, made when first asked for.
    fetch: [Arc<OnceCell<Bytes>>; GROUPS],
}

impl Published {
    /// The entries of one group in the dialect of `/configs/fetch`: JSON with nulls, blank texts as null.
    ///
    /// # Errors
    /// Never for texts this admin wrote; the type is here because reading one back can fail.
    pub(crate) async fn fetch_text(&self, group: ConfigGroup) -> Result<Bytes, FetchError> {
        let text = self.fetch[group as usize].get_or_try_init(|| async {
            let image = Arc::clone(self.image.group(group));
            // A large group takes a while, and the pollers' threads have other things to do.
            tokio::task::spawn_blocking(move || fetch_text(&image)).await?
        });
        text.await.cloned()
    }
}

/// Why a group could not be rendered.
#[derive(Debug, thiserror::Error)]
#[error("render a group of the configuration")]
pub(crate) enum FetchError {
    /// The text could not be read back.
    Gson(#[from] GsonError),
    /// It could not be written.
    Json(#[from] serde_json::Error),
    /// The rendering was given up.
    Join(#[from] tokio::task::JoinError),
}

/// Makes images and hands them out.
#[derive(Debug)]
pub(crate) struct Publisher {
    published: watch::Sender<Arc<Published>>,
    image: watch::Sender<Arc<ConfigImage>>,
}

impl Publisher {
    /// A publisher whose first image is of this store.
    ///
    /// # Errors
    /// If a group cannot be written: there is no former image to keep, and an empty one would be news to gateways.
    pub(crate) fn new(store: Arc<Store>, now_ms: i64) -> Result<Self, GsonError> {
        let mut rendering = Rendering::default();
        let [app_auth, plugin, rule, selector, meta_data] = ConfigGroup::ALL.map(|group| {
            let image = rendering.group(&store, group, "", now_ms)?;
            Ok::<_, GsonError>(Arc::new(image))
        });
        let groups = [app_auth?, plugin?, rule?, selector?, meta_data?];
        let image = Arc::new(ConfigImage { revision: store.revision(), groups });
        let fetch = std::array::from_fn(|_| Arc::default());
        let published = Arc::new(Published { store, image: Arc::clone(&image), rendering, fetch });
        Ok(Self { published: watch::Sender::new(published), image: watch::Sender::new(image) })
    }

    /// The newest state, for the admin's own parts.
    pub(crate) fn published(&self) -> watch::Receiver<Arc<Published>> {
        self.published.subscribe()
    }

    /// The newest image, for gateways and polls; it does not wake them for what they do not see.
    pub(crate) fn image(&self) -> watch::Receiver<Arc<ConfigImage>> {
        self.image.subscribe()
    }

    /// Publishes a store after changes; only the groups of the events are rendered.
    pub(crate) fn publish(&self, store: Arc<Store>, events: &[DataEvent], now_ms: i64) {
        let changed = ConfigGroup::ALL.map(|group| events.iter().any(|event| event.data.group() == group));
        self.publish_groups(store, changed, now_ms);
    }

    /// Publishes a store of which nothing is known.
    pub(crate) fn publish_all(&self, store: Arc<Store>, now_ms: i64) {
        self.publish_groups(store, [true; GROUPS], now_ms);
    }

    fn publish_groups(&self, store: Arc<Store>, changed: [bool; GROUPS], now_ms: i64) {
        let before = Arc::clone(&self.published.borrow());
        if store.revision() == before.image.revision && changed == [false; GROUPS] {
            let Published { image, rendering, fetch, .. } = (*before).clone();
            self.published.send_replace(Arc::new(Published { store, image, rendering, fetch }));
            return;
        }
        let (mut rendering, mut fetch) = (before.rendering.clone(), before.fetch.clone());
        let groups = ConfigGroup::ALL.map(|group| {
            let at = group as usize;
            let former = before.image.group(group);
            if !changed[at] {
                return Arc::clone(former);
            }
            let image = rendering.group(&store, group, &former.json, later(former, now_ms));
            let image = or_former(image, former);
            if !Arc::ptr_eq(&image, former) {
                fetch[at] = Arc::default();
            }
            image
        });
        let image = Arc::new(ConfigImage { revision: store.revision(), groups });
        self.send(Published { store, image, rendering, fetch });
    }

    /// Dates every group anew, as Soul does every five minutes although nothing changed.
    pub(crate) fn refresh(&self, now_ms: i64) {
        let before = Arc::clone(&self.published.borrow());
        let groups = before.image.groups.each_ref().map(|group| {
            Arc::new(GroupImage { last_modify_time: later(group, now_ms), ..(**group).clone() })
        });
        let image = Arc::new(ConfigImage { revision: before.image.revision, groups });
        self.send(Published { image, ..(*before).clone() });
    }

    /// The state first, so that whoever was woken by the image finds it.
    fn send(&self, published: Published) {
        let image = Arc::clone(&published.image);
        self.published.send_replace(Arc::new(published));
        self.image.send_replace(image);
    }
}

/// The time of a group that replaces another. A Java gateway drops a group that is not newer than the one it has, so
/// two changes in one millisecond, or a clock set back, must not give it the same time.
fn later(before: &GroupImage, now_ms: i64) -> i64 {
    now_ms.max(before.last_modify_time.saturating_add(1))
}

/// What was rendered, else the image that gateways have: an old configuration serves, an empty one does not.
fn or_former(rendered: Result<GroupImage, GsonError>, former: &Arc<GroupImage>) -> Arc<GroupImage> {
    rendered.map(Arc::new).unwrap_or_else(|error| {
        tracing::error!(group = %former.data.group(), %error, "a group cannot be written, gateways keep the former");
        Arc::clone(former)
    })
}

/// The group as a Java admin's `/configs/fetch` writes it: the Gson text read back, then written with nulls.
fn fetch_text(image: &GroupImage) -> Result<Bytes, FetchError> {
    match &*image.data {
        GroupData::AppAuth(_) => rewrite::<AppAuthData>(&image.json),
        GroupData::Plugin(_) => rewrite::<PluginData>(&image.json),
        GroupData::Rule(_) => rewrite::<RuleData>(&image.json),
        GroupData::Selector(_) => rewrite::<SelectorData>(&image.json),
        GroupData::MetaData(_) => rewrite::<MetaData>(&image.json),
    }
}

fn rewrite<T: Serialize + DeserializeOwned>(json: &str) -> Result<Bytes, FetchError> {
    let entries: Vec<T> = gson::from_str(json)?.unwrap_or_default();
    Ok(serde_json::to_vec(&entries)?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::store::{Command, Edit, PluginPatch, Snowflake};

    fn publisher() -> Publisher {
        Publisher::new(Arc::new(Store::new(Snowflake::new(1, 1))), 1_000).unwrap()
    }

    fn set_enabled(publisher: &Publisher, enabled: bool) {
        let mut store = (*publisher.published().borrow().store).clone();
        let patch = PluginPatch { enabled: Some(enabled), config: None };
        let applied = store.apply(Command::Edit(Edit::Plugin("5".to_owned(), patch)), 2_000).unwrap();
        let super::super::store::Outcome::Changed { events, .. } = applied.outcome else {
            panic!("no change")
        };
        publisher.publish(Arc::new(store), &events, 2_000);
    }

    #[test]
    fn empty_groups_have_the_md5_of_an_empty_list() {
        let image = Arc::clone(&publisher().image().borrow());
        for group in [ConfigGroup::AppAuth, ConfigGroup::Rule, ConfigGroup::Selector, ConfigGroup::MetaData] {
            assert_eq!(image.group(group).md5, "d751713988987e9331980363e24189ce", "{group}");
            assert_eq!(*image.group(group).json, "[]");
        }
    }

    #[test]
    fn a_change_renders_its_own_group_only() {
        let publisher = publisher();
        let before = Arc::clone(&publisher.image().borrow());
        set_enabled(&publisher, false);
        let after = Arc::clone(&publisher.image().borrow());
        assert_eq!(after.revision, before.revision + 1);
        for group in ConfigGroup::ALL {
            let same = Arc::ptr_eq(before.group(group), after.group(group));
            assert_eq!(same, group != ConfigGroup::Plugin, "{group}");
        }
        assert_eq!(after.group(ConfigGroup::Plugin).last_modify_time, 2_000);
    }

    #[test]
    fn a_group_that_cannot_be_written_stays_as_it_was() {
        let image = Arc::clone(&publisher().image().borrow());
        let former = image.group(ConfigGroup::Plugin);
        let error = gson::to_soul(&f64::NAN).unwrap_err();
        assert!(Arc::ptr_eq(&or_former(Err(error), former), former));
        let next = GroupImage { last_modify_time: 2_000, ..(**former).clone() };
        assert_eq!(*or_former(Ok(next.clone()), former), next);
    }

    #[test]
    fn a_later_group_has_a_later_time_whatever_the_clock_says() {
        let publisher = publisher();
        let mut last = publisher.image().borrow().group(ConfigGroup::Plugin).last_modify_time;
        for step in 0..6 {
            if step % 3 == 2 {
                publisher.refresh(500)
            } else {
                set_enabled(&publisher, step % 3 == 1)
            }
            let time = publisher.image().borrow().group(ConfigGroup::Plugin).last_modify_time;
            assert!(time > last, "step {step}: {time} after {last}");
            last = time;
        }
    }

    #[test]
    fn refresh_changes_the_time_alone() {
        let publisher = publisher();
        let before = Arc::clone(&publisher.image().borrow());
        publisher.refresh(9_000);
        let after = Arc::clone(&publisher.image().borrow());
        for (old, new) in before.groups.iter().zip(&after.groups) {
            assert_eq!((&old.md5, &old.json, 9_000), (&new.md5, &new.json, new.last_modify_time));
        }
        assert_eq!(before.revision, after.revision);
    }

    #[test]
    fn what_gateways_do_not_see_does_not_wake_them() {
        let publisher = publisher();
        let mut image = publisher.image();
        let store = Arc::clone(&publisher.published().borrow().store);
        publisher.publish(store, &[], 2_000);
        assert!(!image.has_changed().unwrap());
        publisher.refresh(3_000);
        assert!(image.has_changed().unwrap());
        image.mark_unchanged();
    }

    #[tokio::test]
    async fn fetched_text_has_nulls() {
        let publisher = publisher();
        let published = Arc::clone(&publisher.published().borrow());
        let text = published.fetch_text(ConfigGroup::Plugin).await.unwrap();
        let text = std::str::from_utf8(&text).unwrap();
        assert!(
            text.starts_with(r#"[{"id":"1","name":"sign","config":null,"role":1,"enabled":false},"#),
            "{text}"
        );
    }
}
