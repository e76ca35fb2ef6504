//! What is to be observed, in this order; each one is printed and checked.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
};

use tokio::time::Instant;

use crate::world::{Failure, World, until};

/// Name of the service's selector: its context path.
const SELECTOR: &str = "/http";

/// Name of the rule that is played with.
const RULE: &str = "/http/order/findById";

/// The request that is sent again and again.
const REQUEST: &str = "/http/order/findById?id=95";

/// Rules of the example service.
const RULES: usize = 5;

/// Requests for each observation.
const REQUESTS: usize = 200;

/// Requests of each client address.
const REQUESTS_OF_ONE: usize = 20;

/// Client addresses that are tried: `127.0.0.1` and its neighbours.
const CLIENTS: u8 = 6;

/// The instance that is killed.
const VICTIM: usize = 1;

/// Observes everything, and gives how many things that were.
///
/// # Errors
/// At the first thing that is not as it must be.
pub(crate) async fn observe_all(world: &mut World) -> Result<usize, Failure> {
    registered(world).await?;
    shared(world).await?;
    sticky(world).await?;
    killed(world).await?;
    restored(world).await?;
    Ok(5)
}

async fn registered(world: &World) -> Result<(), Failure> {
    println!("\n1. What was registered");
    let (selector, rules) = until("selector with both instances and five rules at the admin", async || {
        let Some(selector) = world.admin.row("selectors", SELECTOR).await? else { return Ok(None) };
        let id = &selector["id"];
        let mut rules: Vec<_> =
            world.admin.rows("rules").await?.into_iter().filter(|r| r["selectorId"] == *id).collect();
        rules.sort_by_key(|rule| rule["name"].to_string());
        let upstreams = selector["upstreams"].as_array().map_or(0, Vec::len);
        Ok((upstreams == world.instances.len() && rules.len() == RULES).then_some((selector, rules)))
    })
    .await?;
    println!("   selector {SELECTOR}");
    for upstream in selector["upstreams"].as_array().into_iter().flatten() {
        let url = upstream["url"].as_str().unwrap_or_default();
        let name =
            world.name_of(url).ok_or_else(|| Failure::new(format!("upstream `{url}` is no instance")))?;
        println!("     upstream {url}, weight {}: instance {name}", upstream["weight"]);
    }
    for rule in &rules {
        let condition = &rule["conditions"][0];
        let operator = condition["operator"].as_str().unwrap_or_default();
        println!("     rule     uri {operator:<5} {}", condition["paramValue"].as_str().unwrap_or_default());
    }
    until("both instances at the gateway", async || {
        let upstreams = world.gateway.upstreams(SELECTOR).await?;
        Ok((upstreams.len() == world.instances.len()).then_some(()))
    })
    .await?;
    let body =
        until("an answer through the gateway", async || world.gateway.body(REQUEST).await.map(Some)).await?;
    println!("   GET {REQUEST} is answered {body}");
    Ok(())
}

async fn shared(world: &World) -> Result<(), Failure> {
    println!("\n2. How {REQUESTS} such requests are shared");
    for balance in ["random", "roundRobin", "hash"] {
        set_balance(world, balance).await?;
        let shares = Shares::of_requests(world, REQUESTS).await?;
        println!("   {balance:<11} {}", shares.text(world));
        let (least, most) = (shares.least(world), REQUESTS - shares.least(world));
        let fair = match balance {
            // Less than 50 of 200 fair draws: one run in ten to the twelfth.
            "random" => least >= REQUESTS / 4,
            "roundRobin" => takes_turns(least),
            _ => least == 0,
        };
        if !fair {
            return Err(Failure::new(format!("`{balance}` shared {least} to {most}")));
        }
    }
    Ok(())
}

async fn sticky(world: &World) -> Result<(), Failure> {
    println!("\n3. Under hash, one client address always reaches the same instance");
    for last in 1..=CLIENTS {
        let client = IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
        let answered = match world.gateway.ask_from(client, REQUEST, REQUESTS_OF_ONE).await {
            Ok(answered) => answered,
            // Only Linux has all of 127.0.0.0/8 without being asked.
            Err(_) if last > 1 && !cfg!(target_os = "linux") => continue,
            Err(failure) => return Err(failure),
        };
        let first = &answered[0];
        if let Some(other) = answered.iter().find(|addr| *addr != first) {
            return Err(Failure::new(format!("client {client} reached `{first}` and then `{other}`")));
        }
        let name = world.name_of(first).unwrap_or("?");
        println!("   client {client} -> {name}, {REQUESTS_OF_ONE} of {REQUESTS_OF_ONE}");
    }
    Ok(())
}

async fn killed(world: &mut World) -> Result<(), Failure> {
    set_balance(world, "roundRobin").await?;
    let victim = world.instances[VICTIM].addr.clone();
    println!("\n4. Instance {} is killed (kill -9), under roundRobin", world.instances[VICTIM].name);
    world.kill(VICTIM).await?;
    let killed = Instant::now();

    // Traffic goes on all the while.
    let (mut sent, mut failed) = (0, 0);
    let world = &*world;
    until("a gateway without it, after the admin's probe", async || {
        sent += 1;
        if world.gateway.ask(REQUEST).await.is_err() {
            failed += 1;
        }
        Ok((!world.gateway.upstreams(SELECTOR).await?.contains(&victim)).then_some(()))
    })
    .await?;
    let after = killed.elapsed().as_secs_f64();
    let selector = world.admin.row("selectors", SELECTOR).await?.unwrap_or_default();
    let upstreams = selector["upstreams"].as_array().cloned().unwrap_or_default();
    let dead = upstreams.iter().find(|upstream| upstream["url"] == *victim && upstream["healthy"] == false);
    let reason = dead.and_then(|upstream| upstream["lastProbe"]["error"].as_str());
    let reason =
        reason.ok_or_else(|| Failure::new(format!("the admin has no failed probe of `{victim}`")))?;
    println!("   gone after {after:.2} s: the admin's probe says `{reason}`");
    println!("   until then {sent} requests were sent and {failed} failed");

    let shares = Shares::of_requests(world, REQUESTS).await?;
    println!("   after that  {}, none failed", shares.text(world));
    if shares.0.contains_key(&victim) {
        return Err(Failure::new("a killed instance answered"));
    }
    Ok(())
}

async fn restored(world: &mut World) -> Result<(), Failure> {
    println!("\n5. It is started again, on the same port");
    let started = Instant::now();
    world.restart(VICTIM).await?;
    let world = &*world;
    until("both instances at the gateway", async || {
        Ok((world.gateway.upstreams(SELECTOR).await?.len() == world.instances.len()).then_some(()))
    })
    .await?;
    println!(
        "   back after {:.2} s: it registered, and a probe found it alive",
        started.elapsed().as_secs_f64()
    );
    let shares = Shares::of_requests(world, REQUESTS).await?;
    println!("   after that  {}", shares.text(world));
    if !takes_turns(shares.least(world)) {
        return Err(Failure::new("it does not share as before"));
    }
    Ok(())
}

/// Whether two instances took turns, of which one had so few requests.
///
/// Every lane of the gateway takes turns by itself. The requests come one after the other, but on more than one connection if one
/// was closed meanwhile, and then each lane may be in the middle of a turn.
fn takes_turns(least: usize) -> bool {
    least + 2 >= REQUESTS / 2
}

/// Changes the load balance at the admin and waits until the gateway goes by it.
async fn set_balance(world: &World, balance: &str) -> Result<(), Failure> {
    let before = world.gateway.revision().await?;
    if world.admin.set_balance(RULE, balance).await? {
        until("a new configuration at the gateway", async || {
            Ok((world.gateway.revision().await? > before).then_some(()))
        })
        .await?;
    }
    Ok(())
}

/// How many requests each instance answered, by address.
struct Shares(BTreeMap<String, usize>);

impl Shares {
    async fn of_requests(world: &World, requests: usize) -> Result<Self, Failure> {
        let mut shares = BTreeMap::new();
        for _ in 0..requests {
            *shares.entry(world.gateway.ask(REQUEST).await?).or_default() += 1;
        }
        Ok(Self(shares))
    }

    fn of(&self, addr: &str) -> usize {
        self.0.get(addr).copied().unwrap_or_default()
    }

    /// The smallest share.
    fn least(&self, world: &World) -> usize {
        world.instances.iter().map(|instance| self.of(&instance.addr)).min().unwrap_or_default()
    }

    /// `A 100 ##########  B 100 ##########`
    fn text(&self, world: &World) -> String {
        let bar = |count: usize| "#".repeat(count.div_ceil(10));
        let shares = world.instances.iter().map(|instance| {
            let count = self.of(&instance.addr);
            format!("{} {count:>3} {:<20}", instance.name, bar(count))
        });
        shares.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    }
}
