//! What of a gateway takes up new settings while it serves: every part that can registers here, and is asked in turn.
//!
//! All take them up, or none does: a part first says whether it can, and makes what it needs, and only when all have said so
//! does it change.

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;

use super::{GatewayConfig, GatewayError};

/// Takes up what was made, which cannot fail.
type TakeUp = Box<dyn FnOnce()>;

type Make = Box<dyn Fn(&GatewayConfig) -> Result<TakeUp, GatewayError> + Send + Sync>;

/// The parts that take up new settings.
#[derive(Default)]
pub(super) struct Reloads(Vec<(&'static str, Make)>);

impl Reloads {
    /// Adds a part. It is asked at every reload, whether its settings changed or the files that they name: it gives what it will
    /// do, or an error.
    pub(super) fn add<T: FnOnce() + 'static>(
        &mut self,
        part: &'static str,
        make: impl Fn(&GatewayConfig) -> Result<T, GatewayError> + Send + Sync + 'static,
    ) {
        self.0.push((part, Box::new(move |config| Ok(Box::new(make(config)?)))));
    }

    /// Adds a part that is made from settings and swapped in whole.
    pub(super) fn swap<T: Send + Sync + 'static>(
        &mut self,
        part: &'static str,
        place: &Arc<ArcSwap<T>>,
        make: impl Fn(&GatewayConfig) -> Arc<T> + Send + Sync + 'static,
    ) {
        let place = Arc::clone(place);
        self.add(part, move |config| {
            let (place, made) = (Arc::clone(&place), make(config));
            Ok(move || place.store(made))
        });
    }

    /// Has every part take up the settings, and gives their names.
    ///
    /// # Errors
    /// What each said that cannot; then none does.
    pub(super) fn run(&self, config: &GatewayConfig) -> Result<Vec<&'static str>, GatewayError> {
        let (mut ready, mut refused) = (Vec::with_capacity(self.0.len()), Vec::new());
        for (part, make) in &self.0 {
            match make(config) {
                Ok(take_up) => ready.push((*part, take_up)),
                Err(error) => refused.push((*part, error)),
            }
        }
        if !refused.is_empty() {
            return Err(GatewayError::Reload { refused });
        }
        let take_up = |(part, take_up): (_, TakeUp)| {
            take_up();
            part
        };
        Ok(ready.into_iter().map(take_up).collect())
    }
}

impl fmt::Debug for Reloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(part, _)| part)).finish()
    }
}
