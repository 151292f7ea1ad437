//! The service's own addresses. Nothing is sent there: an event that calls the API could make further events for ever.

use url::{Host, Url};

use crate::network::address::Reach;

/// The service's own addresses, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnAddresses {
    /// Addresses of the API, without `/api/v1`.
    pub base_urls: Vec<String>,
    /// The id of the API at the gateway, which is the beginning of the gateway's own name for it.
    pub api_id: Option<String>,
}

impl OwnAddresses {
    /// Whether `url` leads to one of them.
    pub fn include(&self, reach: Reach, url: &Url) -> bool {
        let is_own = |base: &String| Url::parse(base).is_ok_and(|base| leads_to(reach, url, &base));
        self.base_urls.iter().any(is_own) || self.api_id.as_deref().is_some_and(|id| is_gateway(url, id))
    }
}

/// Whether `url` leads to the API at `base`.
fn leads_to(reach: Reach, url: &Url, base: &Url) -> bool {
    match reach {
        // The path is no criterion: the gateway decodes it.
        Reach::Public => host(url).is_some() && host(url) == host(base),
        // The port of the local stack also has the inbox, which gets events.
        Reach::Loopback => {
            let same_host = host(url) == host(base) || (is_this_machine(url) && is_this_machine(base));
            let same_port = url.port_or_known_default() == base.port_or_known_default();
            same_host && same_port && url.path().starts_with("/api/v1")
        }
    }
}

/// Whether `url` leads to the API `id` by the gateway's own name, in any region: `ID.execute-api.REGION.amazonaws.com`.
fn is_gateway(url: &Url, id: &str) -> bool {
    let host = host(url).unwrap_or_default();
    let mut labels = host.split('.');
    let (first, second) = (labels.next(), labels.next());
    first.is_some_and(|first| first.eq_ignore_ascii_case(id))
        && second.is_some_and(|second| second.starts_with("execute-api"))
}

/// The host, without the dot that may stand behind a name.
fn host(url: &Url) -> Option<&str> {
    url.host_str().map(|host| host.trim_end_matches('.'))
}

fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(_)) => host(url) == Some("localhost"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_own(reach: Reach, url: &str) -> bool {
        let base_urls = match reach {
            Reach::Public => vec!["https://api.example.com/base".to_owned()],
            Reach::Loopback => vec!["http://127.0.0.1:3000".to_owned()],
        };
        let own = OwnAddresses { base_urls, api_id: Some("a1b2c3".to_owned()) };
        own.include(reach, &Url::parse(url).unwrap())
    }

    #[test]
    fn a_deployed_api_has_its_domains_and_the_name_of_its_gateway() {
        for url in [
            "https://api.example.com/base/api/v1/tag",
            "https://API.example.com./",
            "https://api.example.com:8443/%61pi",
            "https://a1b2c3.execute-api.eu-central-1.amazonaws.com/prod/api/v1/tag",
            "https://A1B2C3.execute-api.cn-north-1.amazonaws.com.cn",
            "https://a1b2c3.execute-api.eu-central-1.api.aws/",
        ] {
            assert!(is_own(Reach::Public, url), "{url}");
        }
        for url in [
            "https://example.com/",
            "https://www.api.example.com/",
            "https://z9.execute-api.eu-central-1.amazonaws.com/",
            "https://a1b2c3.example.com/",
            "https://93.184.215.14/",
        ] {
            assert!(!is_own(Reach::Public, url), "{url}");
        }
    }

    #[test]
    fn a_local_api_shares_its_port_with_the_inbox() {
        for url in [
            "http://127.0.0.1:3000/api/v1/tag",
            "http://localhost:3000/api/v1/tag?api_key=x",
            "http://[::1]:3000/x/../api/v1",
            "http://0x7f.1:3000/api/v1/tag",
        ] {
            assert!(is_own(Reach::Loopback, url), "{url}");
        }
        for url in [
            "http://127.0.0.1:3000/inbox/events",
            "http://127.0.0.1:3001/api/v1/tag",
            "https://93.184.215.14:3000/api/v1/tag",
            "http://127.0.0.1:3000/",
        ] {
            assert!(!is_own(Reach::Loopback, url), "{url}");
        }
    }
}
