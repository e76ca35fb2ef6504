//! Values that cannot work, and what to give instead.

use super::{super::forward::hops, GatewayConfig, MIN_HEAD_BYTES};

impl GatewayConfig {
    /// Lists every value that cannot work, each with its field; empty when all is well.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        self.problems_by(&|field| format!("`{field}`"))
    }

    /// The same, with each field called as `name` says; those of the synchronisation are asked for as `sync.poll_timeout`.
    pub(crate) fn problems_by(&self, name: &dyn Fn(&str) -> String) -> Vec<String> {
        let mut found = self.sync.problems_by(&|field| name(&format!("sync.{field}")));
        for (field, value) in [
            ("check_timeout", self.check_timeout),
            ("connect_timeout", self.connect_timeout),
            ("header_read_timeout", self.header_read_timeout),
        ] {
            if value.is_zero() {
                found.push(format!("{} is zero, give a time above it", name(field)));
            }
        }
        for (field, value, least) in [
            ("max_head_bytes", self.max_head_bytes, MIN_HEAD_BYTES),
            ("max_headers", self.max_headers, 1),
            ("max_connections", self.max_connections, 1),
        ] {
            if value < least {
                found.push(format!("{} is {value}, the least is {least}", name(field)));
            }
        }
        if self.panic_threshold > 100 {
            let (name, percent) = (name("panic_threshold"), self.panic_threshold);
            found.push(format!("{name} is {percent}, the most is 100 percent"));
        }
        if let Some(via) = self.via.as_deref().filter(|name| !hops::is_name(name)) {
            found.push(format!(
                "{} is `{via}`, give a name such as `gateway` or `shop.example:80`",
                name("via")
            ));
        }
        found.extend(self.problems_of_tls(name));
        found
    }

    fn problems_of_tls(&self, name: &dyn Fn(&str) -> String) -> Vec<String> {
        let mut found = Vec::new();
        let (certificates, keys) = (self.tls_certificates.len(), self.tls_keys.len());
        if certificates != keys {
            found.push(format!(
                "{} has {certificates} files and {} {keys}, give each certificate its key, in the same order",
                name("tls_certificates"),
                name("tls_keys"),
            ));
        }
        if certificates == 0 && self.tls_client_ca.is_some() {
            let (client, own) = (name("tls_client_ca"), name("tls_certificates"));
            found.push(format!("{client} is given without {own}, give both, or leave it out"));
        }
        if self.upstream_certificate.is_some() != self.upstream_key.is_some() {
            let (certificate, key) = (name("upstream_certificate"), name("upstream_key"));
            found.push(format!("{certificate} and {key} go together, give both or none"));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_defaults_have_no_problem() {
        assert_eq!(GatewayConfig::default().problems(), Vec::<String>::new());
    }

    #[test]
    fn every_problem_is_listed_with_its_field() {
        let mut config = GatewayConfig {
            connect_timeout: Duration::ZERO,
            max_head_bytes: 10,
            max_connections: 0,
            panic_threshold: 101,
            via: Some("a b".to_owned()),
            tls_keys: vec!["a.key".into()],
            tls_client_ca: Some("ca.pem".into()),
            upstream_key: Some("b.key".into()),
            ..GatewayConfig::default()
        };
        config.sync.backoff_max = Duration::ZERO;
        let fields = [
            "sync.backoff_max",
            "connect_timeout",
            "max_head_bytes",
            "max_connections",
            "panic_threshold",
            "via",
            "tls_certificates",
            "tls_client_ca",
            "upstream_certificate",
        ];
        let found = config.problems();
        assert_eq!(found.len(), fields.len(), "{found:?}");
        for (problem, field) in found.iter().zip(fields) {
            assert!(problem.starts_with(&format!("`{field}` ")), "{field} in {found:?}");
        }
        let named = config.problems_by(&|field| format!("<{field}>"));
        assert!(named.iter().zip(fields).all(|(problem, field)| problem.starts_with(&format!("<{field}> "))));
    }
}
