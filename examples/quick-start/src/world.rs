//! The parts of the demonstration and the ways to talk to them.

use std::{fmt, fs, io, path::PathBuf, process, time::Duration};

use tokio::time::{Instant, sleep};

use crate::{
    api::{Admin, Gateway},
    http::Http,
    part::{Part, Role, log_tail},
};

/// Seconds between two probes of the admin; ten by default, too long for a demonstration.
const PROBE_EVERY: &str = "0.5";

/// Pause between two looks at something that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Longest a single thing is waited for.
const WAIT: Duration = Duration::from_secs(10);

/// Last lines of a log that are shown when something went wrong.
const LOG_LINES: usize = 12;

/// What was not seen, and what was instead.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    /// An error with its causes.
    pub(crate) fn of(error: impl std::error::Error) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        Self(text)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Looks until `look` finds something.
///
/// # Errors
/// When the time is over; the message says what was waited for.
pub(crate) async fn until<T>(
    what: &str,
    mut look: impl AsyncFnMut() -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    let deadline = Instant::now() + WAIT;
    loop {
        let seen = look().await;
        match seen {
            Ok(Some(found)) => return Ok(found),
            _ if Instant::now() < deadline => sleep(LOOK_EVERY).await,
            Ok(None) => return Err(Failure::new(format!("within {WAIT:?} there was no: {what}"))),
            Err(error) => {
                return Err(Failure::new(format!("within {WAIT:?} there was no: {what}; last: {error}")));
            }
        }
    }
}

/// An instance of the service.
pub(crate) struct Instance {
    /// `A` or `B`.
    pub(crate) name: &'static str,
    /// Where it listens.
    pub(crate) addr: String,
    /// `None` while it is dead.
    part: Option<Part>,
}

/// Everything that runs.
pub(crate) struct World {
    folder: Folder,
    admin_part: Part,
    gateway_part: Part,
    pub(crate) instances: [Instance; 2],
    pub(crate) admin: Admin,
    pub(crate) gateway: Gateway,
}

impl World {
    /// Starts the parts: the admin, then all who look for it.
    pub(crate) async fn start() -> Result<Self, Failure> {
        let folder = Folder::make()?;
        let data = folder.0.display().to_string();
        let free = "127.0.0.1:0";
        let logs = ["--log-format", "text"];
        let args = ["--admin-listen", free, "--data-dir", &data, "--upstream-check-interval", PROBE_EVERY];
        let admin_part = folder.part("admin", Role::Admin, &[&args[..], &logs].concat()).await?;
        let admin_url = admin_part.address("admin")?;
        println!("  admin       {admin_url}");

        let args =
            ["--gateway-listen", free, "--status-listen", free, "--data-dir", &data, "--admin", &admin_url];
        let gateway_part = folder.part("gateway", Role::Gateway, &[&args[..], &logs].concat()).await?;
        let (gateway_url, status_url) = (gateway_part.address("gateway")?, gateway_part.address("status")?);
        println!("  gateway     {gateway_url}");

        let a = Instance::start(&folder, "A", free, &admin_url).await?;
        let b = Instance::start(&folder, "B", free, &admin_url).await?;
        for Instance { name, addr, .. } in [&a, &b] {
            println!("  instance {name}  http://{addr}");
        }
        let http = Http::new();
        Ok(Self {
            admin: Admin::new(admin_url, http.clone()),
            gateway: Gateway::new(gateway_url, status_url, http),
            folder,
            admin_part,
            gateway_part,
            instances: [a, b],
        })
    }

    /// The name of the instance at an address.
    pub(crate) fn name_of(&self, addr: &str) -> Option<&'static str> {
        self.instances.iter().find(|instance| instance.addr == addr).map(|instance| instance.name)
    }

    /// Kills an instance, as `kill -9` does.
    pub(crate) async fn kill(&mut self, index: usize) -> Result<(), Failure> {
        if let Some(part) = self.instances[index].part.take() {
            part.kill().await?;
        }
        Ok(())
    }

    /// Starts an instance again, where it was.
    pub(crate) async fn restart(&mut self, index: usize) -> Result<(), Failure> {
        let Instance { name, addr, .. } = &self.instances[index];
        self.instances[index] = Instance::start(&self.folder, name, addr, self.admin.url()).await?;
        Ok(())
    }

    pub(crate) fn admin_url(&self) -> &str {
        self.admin.url()
    }

    pub(crate) fn gateway_url(&self) -> &str {
        self.gateway.url()
    }

    pub(crate) fn status_url(&self) -> &str {
        self.gateway.status_url()
    }

    /// Shows the end of every log, for whoever has to find out.
    pub(crate) fn print_logs(&self) {
        for name in ["admin", "gateway", "A", "B"] {
            println!("\n--- end of the log of {name}");
            log_tail(&self.folder.0, name, LOG_LINES).iter().for_each(|line| println!("{line}"));
        }
    }

    /// Ends every part, those first who need the others.
    pub(crate) async fn stop(self) {
        let [a, b] = self.instances;
        let services = [a.part, b.part].into_iter().flatten();
        for part in services.chain([self.gateway_part, self.admin_part]) {
            part.stop().await;
        }
    }
}

impl Instance {
    async fn start(folder: &Folder, name: &'static str, listen: &str, admin: &str) -> Result<Self, Failure> {
        let part = folder.part(name, Role::Service, &["--listen", listen, "--admin", admin]).await?;
        let url = part.address("http")?;
        let addr = url.trim_start_matches("http://").to_owned();
        Ok(Self { name, addr, part: Some(part) })
    }
}

/// A folder for data and logs, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn make() -> io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("soul-quick-start-{}", process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    async fn part(&self, name: &str, role: Role, args: &[&str]) -> Result<Part, Failure> {
        Part::start(name, role, &self.0, args).await.map_err(|error| {
            let log = log_tail(&self.0, name, LOG_LINES).join("\n");
            Failure::new(format!("{error}\n{log}"))
        })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // OK to ignore: the system clears its folder of temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}
