//! The dialects, and the services that take registrations.

use std::{fmt, str::FromStr};

use super::UnsupportedRpcType;
use crate::model::DIVIDE;

/// Whose rules a registration follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Soul of February 2021.
    Feb2021,
    /// Soul 2.3.0.
    V230,
    /// Apache ShenYu, which registers routes and instances apart; written in the words that Soul's gateways know.
    Shenyu,
}

/// The service that takes a registration: Feb-2021 chooses it by URL, all later ones by the body's rpc type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// Plain HTTP.
    SpringMvc,
    /// HTTP found through a registry.
    SpringCloud,
    /// Dubbo.
    Dubbo,
    /// Sofa.
    Sofa,
    /// Tars.
    Tars,
    /// gRPC.
    Grpc,
}

impl Service {
    /// Every service.
    pub const ALL: [Self; 6] =
        [Self::SpringMvc, Self::SpringCloud, Self::Dubbo, Self::Sofa, Self::Tars, Self::Grpc];

    /// The rpc type of its registrations.
    #[must_use]
    pub const fn rpc_type(self) -> &'static str {
        match self {
            Self::SpringMvc => "http",
            Self::SpringCloud => "springCloud",
            Self::Dubbo => "dubbo",
            Self::Sofa => "sofa",
            Self::Tars => "tars",
            Self::Grpc => "grpc",
        }
    }

    /// The plugin its rules belong to.
    #[must_use]
    pub const fn plugin(self) -> &'static str {
        match self {
            Self::SpringMvc => DIVIDE,
            other => other.rpc_type(),
        }
    }

    /// Whether the service is one of the RPC kinds, which register a method and not a path alone.
    #[must_use]
    pub const fn is_rpc(self) -> bool {
        !matches!(self, Self::SpringMvc | Self::SpringCloud)
    }

    /// Whether its selectors hold nodes; else gateways find nodes in another registry.
    #[must_use]
    pub const fn has_nodes(self, dialect: Dialect) -> bool {
        match self {
            Self::SpringMvc => true,
            Self::Tars | Self::Grpc => matches!(dialect, Dialect::V230 | Dialect::Shenyu),
            Self::SpringCloud | Self::Dubbo | Self::Sofa => false,
        }
    }

    /// Whether the registration of a route puts its node into a selector; with ShenYu a node registers by itself.
    #[must_use]
    pub const fn registers_node(self, dialect: Dialect) -> bool {
        !matches!(dialect, Dialect::Shenyu) && self.has_nodes(dialect)
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rpc_type())
    }
}

impl FromStr for Service {
    type Err = UnsupportedRpcType;

    fn from_str(rpc_type: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|service| service.rpc_type() == rpc_type)
            .ok_or_else(|| UnsupportedRpcType(Some(rpc_type.to_owned())))
    }
}
