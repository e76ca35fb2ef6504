//! Settings that are one of a few names.

use std::{fmt, str::FromStr};

/// A name that is none of a setting's choices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a choice, expected {expected}")]
pub struct UnknownChoice {
    given: String,
    expected: &'static str,
}

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident, $expected:literal { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// Every choice, the default first.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name in settings.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownChoice;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    other => Err(UnknownChoice { given: other.to_owned(), expected: $expected }),
                }
            }
        }
    };
}

choice! {
    /// Which HTTP status goes with the gateway's own errors; the body's `code` is Soul's either way.
    ErrorStatus, "`http` or `soul`" {
        /// The proper ones: 404, 502, 503, 504.
        #[default]
        Http = "http",
        /// Soul's: 200 for a request that finds no way, 500 for an upstream that fails.
        Soul = "soul",
    }
}

choice! {
    /// Which `Host` the upstream sees.
    HostHeader, "`preserve` or `upstream`" {
        /// The caller's.
        #[default]
        Preserve = "preserve",
        /// The upstream's own `host:port`, as Soul's default client sends it.
        Upstream = "upstream",
    }
}

choice! {
    /// What is done about `X-Forwarded-For`, `X-Forwarded-Proto` and `X-Forwarded-Host`.
    Forwarded, "`append`, `replace` or `off`" {
        /// The caller's address is added to `-For`; `-Proto` and `-Host` are set where absent. For a gateway
        /// behind another proxy.
        #[default]
        Append = "append",
        /// All three are set anew, so that a caller cannot make them up. For a gateway at the edge.
        Replace = "replace",
        /// All three pass as they came, as in Soul.
        Off = "off",
    }
}

choice! {
    /// How many requests an upstream gets at once.
    UpstreamLimit, "`adaptive` or `fixed`" {
        /// Fewer than `upstream_max_requests` while it takes on more than it can serve: what would only wait there is refused.
        #[default]
        Adaptive = "adaptive",
        /// `upstream_max_requests`.
        Fixed = "fixed",
    }
}

choice! {
    /// How the threads of lanes are scheduled, on Linux; elsewhere as any others.
    LaneScheduling, "`batch` or `normal`" {
        /// They interrupt nobody: cheapest where callers and upstreams are on the same machine.
        #[default]
        Batch = "batch",
        /// As any others: soonest where other programs want the cores all the time.
        Normal = "normal",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_by_name_and_unknown_names_are_refused() {
        for choice in Forwarded::ALL {
            assert_eq!(choice.as_str().parse(), Ok(*choice));
        }
        let refused = "Append".parse::<Forwarded>().unwrap_err().to_string();
        assert_eq!(refused, "`Append` is not a choice, expected `append`, `replace` or `off`");
    }
}
