//! What of a gateway takes up new settings while it serves: every part that can registers here, and is asked in turn.

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;

use super::{GatewayConfig, GatewayError};

/// How a reload went: each part, with why it keeps what it had.
pub type Reloaded = Vec<(&'static str, Result<(), GatewayError>)>;

type TakeUp = Box<dyn Fn(&GatewayConfig) -> Result<(), GatewayError> + Send + Sync>;

/// The parts that take up new settings.
#[derive(Default)]
pub(super) struct Reloads(Vec<(&'static str, TakeUp)>);

impl Reloads {
    /// Adds a part. It is asked at every reload, whether its settings changed or the files that they name: it takes them up, or
    /// gives an error and keeps what it had.
    pub(super) fn add(
        &mut self,
        part: &'static str,
        take_up: impl Fn(&GatewayConfig) -> Result<(), GatewayError> + Send + Sync + 'static,
    ) {
        self.0.push((part, Box::new(take_up)));
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
            place.store(make(config));
            Ok(())
        });
    }

    /// Asks every part.
    pub(super) fn run(&self, config: &GatewayConfig) -> Reloaded {
        self.0.iter().map(|(part, take_up)| (*part, take_up(config))).collect()
    }
}

impl fmt::Debug for Reloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(part, _)| part)).finish()
    }
}
