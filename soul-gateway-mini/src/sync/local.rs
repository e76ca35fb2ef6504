//! The admin in the same process: its images arrive by a watch channel, without HTTP.

use std::{future, sync::Arc};

use tokio::{sync::watch, task};

use super::{Learned, Source, SyncError, Update};
use crate::model::{ConfigImage, GroupImage};

/// Follows the admin of this process.
pub(crate) struct Local {
    images: watch::Receiver<Arc<ConfigImage>>,
    seen: Option<Arc<ConfigImage>>,
    gone: bool,
}

impl Local {
    pub(crate) fn new(images: watch::Receiver<Arc<ConfigImage>>) -> Self {
        Self { images, seen: None, gone: false }
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
        let Some(seen) = &self.seen else {
            let image = Arc::clone(&self.images.borrow_and_update());
            let all = image.groups.iter().map(learned).collect();
            self.seen = Some(image);
            return Ok(Update::Refresh(all));
        };
        if self.images.changed().await.is_err() {
            self.gone = true;
            return Err(SyncError::LocalAdminGone);
        }
        let image = Arc::clone(&self.images.borrow_and_update());
        let changed: Vec<_> = image
            .groups
            .iter()
            .zip(&seen.groups)
            .filter(|(new, old)| new.md5 != old.md5)
            .map(|(new, _)| learned(new))
            .collect();
        if let Some(seen) = self.seen.replace(image) {
            // The last holder of a large image takes it apart; it ends by itself, so nobody waits for it.
            drop(task::spawn_blocking(move || drop(seen)));
        }
        Ok(if changed.is_empty() { Update::Unchanged } else { Update::Groups(changed) })
    }
}

fn learned(group: &Arc<GroupImage>) -> Learned {
    Learned { data: Arc::clone(&group.data), refused: Vec::new() }
}

#[cfg(test)]
mod tests {
    use soul_client::wire::soul::PluginData;

    use super::*;
    use crate::model::GroupData;

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
        let GroupData::Plugin(plugins) = &**data else { panic!("{groups:?}") };
        assert_eq!(plugins[0].name.as_deref(), Some("waf"));

        drop(sender);
        assert!(matches!(local.next().await, Err(SyncError::LocalAdminGone)));
    }
}
