//! Admin and gateway in this process, started by the flags a user would give.

use std::{
    panic,
    sync::{Mutex, Once, PoisonError},
};

use soul_gateway_mini::{
    app::App,
    config::{ConfigError, Settings},
};

use super::{address::own_address, admin::AdminApi, gateway::GatewayApi};

/// Panics in the code under test, as they were told.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Notes every panic in the code under test; those of the tests themselves fail them anyway.
fn watch_for_panics() {
    static ONCE: Once = Once::new();

    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let of_ours = |location: &panic::Location<'_>| {
                ["soul-gateway-mini/src", "soul-client/src"].iter().any(|part| location.file().contains(part))
            };
            if panic.location().is_some_and(of_ours) {
                PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(panic.to_string());
            }
            before(panic);
        }));
    });
}

/// A running admin, gateway, or both.
#[derive(Debug)]
pub struct Part {
    app: App,
}

impl Part {
    /// Starts what the arguments say, for example `["admin", "--upstream-check-interval", "0.1"]`, and returns
    /// once it serves. Addresses that the arguments leave open are free ports; data is kept in memory.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start(args: &[&str]) -> Self {
        watch_for_panics();
        let settings = settings(args).unwrap_or_else(|error| panic!("`{args:?}`: {error}"));
        let app = App::build(settings).await.unwrap_or_else(|error| panic!("start `{args:?}`: {error:?}"));
        Self { app }
    }

    /// Base address of the admin.
    ///
    /// # Panics
    /// When none runs here.
    #[must_use]
    pub fn admin_url(&self) -> String {
        format!("http://{}", self.app.admin_addr().expect("an admin runs"))
    }

    /// The admin.
    ///
    /// # Panics
    /// When none runs here.
    #[must_use]
    pub fn admin(&self) -> AdminApi {
        AdminApi::new(self.admin_url())
    }

    /// Base address of the gateway.
    ///
    /// # Panics
    /// When none runs here.
    #[must_use]
    pub fn gateway_url(&self) -> String {
        format!("http://{}", self.app.gateway_addr().expect("a gateway runs"))
    }

    /// The gateway.
    ///
    /// # Panics
    /// When none runs here.
    #[must_use]
    pub fn gateway(&self) -> GatewayApi {
        let status = self.app.status_addr().expect("a gateway runs");
        GatewayApi::new(self.gateway_url(), format!("http://{status}"))
    }

    /// Drains and ends.
    ///
    /// # Panics
    /// When any task of admin, gateway or SDK has panicked in this process: the runtime would keep that to itself.
    pub async fn stop(self) {
        self.app.shutdown().await;
        let panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(panics.is_empty(), "a task panicked: {panics:?}");
    }
}

/// The arguments, with defaults fit for a test.
fn settings(args: &[&str]) -> Result<Settings, ConfigError> {
    let free = format!("{}:0", own_address());
    let mut all = vec!["soul-gateway-mini"];
    let role = args.first().filter(|arg| !arg.starts_with('-'));
    let of_admin = [("--admin-listen", free.as_str())];
    let of_gateway = [("--gateway-listen", free.as_str()), ("--status-listen", free.as_str())];
    let mut defaults = vec![("--data-dir", "memory"), ("--drain-timeout", "5")];
    defaults.extend(of_admin.iter().filter(|_| role != Some(&"gateway")));
    defaults.extend(of_gateway.iter().filter(|_| role != Some(&"admin")));
    for (flag, value) in defaults.into_iter().filter(|(flag, _)| !args.contains(flag)) {
        all.extend([flag, value]);
    }
    all.extend(args);
    Settings::read(all.into_iter().map(Into::into))
}
