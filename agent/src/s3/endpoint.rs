//! Where servers are: addresses of an endpoint, and what requests to it begin with.

use std::net::{SocketAddr, ToSocketAddrs};

use serde::Deserialize;

use super::signature::push_encoded;
use super::spec::TargetSpec;
use super::transport::{TlsSettings, tls_config};

/// Ports of both schemes.
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;
/// What a bucket's name may have.
const MAX_BUCKET_BYTES: usize = 63;

/// How requests name the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BucketStyle {
    /// As the first part of the path.
    #[default]
    Path,
    /// As the first part of the host's name.
    Virtual,
}

/// A server, or several behind one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// As the spec has it.
    pub url: String,
    /// Whether connections are encrypted.
    pub is_tls: bool,
    /// Its name or address, without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl Endpoint {
    /// Of a URL without a path; else what is wrong with it.
    pub fn parse(url: &str) -> Result<Self, String> {
        let fault = |what: &str| {
            Err(format!("Endpoint {url:?} {what}; give http://host:port or https://host:port."))
        };
        let (is_tls, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return fault("has another scheme"),
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let is_plain =
            authority.bytes().all(|byte| byte.is_ascii_graphic() && !b"/?#@".contains(&byte));
        if authority.is_empty() || !is_plain {
            return fault("has no host alone");
        }
        let (host, port) = if let Some(inner) = authority.strip_prefix('[') {
            let Some((host, rest)) = inner.split_once(']') else {
                return fault("has no end of its address");
            };
            (host, rest.strip_prefix(':').or((rest.is_empty()).then_some("")))
        } else {
            let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
            (host, Some(port))
        };
        let default = if is_tls { HTTPS_PORT } else { HTTP_PORT };
        let port = match port {
            Some("") => Some(default),
            Some(digits) => digits.parse().ok().filter(|&port| port > 0),
            None => None,
        };
        match port {
            Some(port) if !host.is_empty() => {
                Ok(Self { url: url.to_owned(), is_tls, host: host.to_owned(), port })
            }
            _ => fault("has no such port"),
        }
    }

    /// All addresses of it; what is wrong where it has none.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let mut addresses: Vec<SocketAddr> = match found {
            Ok(found) => found.collect(),
            Err(error) => {
                return Err(format!("The name of {} is not found: {error}.", self.url));
            }
        };
        addresses.sort_unstable();
        addresses.dedup();
        if addresses.is_empty() {
            return Err(format!("The name of {} has no address.", self.url));
        }
        Ok(addresses)
    }

    /// The host as requests to a bucket name it.
    #[must_use]
    pub fn host_header(&self, bucket: &str, style: BucketStyle) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let prefix =
            if style == BucketStyle::Virtual { format!("{bucket}.") } else { String::new() };
        let default = if self.is_tls { HTTPS_PORT } else { HTTP_PORT };
        if self.port == default {
            format!("{prefix}{host}")
        } else {
            format!("{prefix}{host}:{}", self.port)
        }
    }
}

/// An endpoint with all that requests to it need.
#[derive(Debug, Clone)]
pub struct Server {
    /// Where it is.
    pub endpoint: Endpoint,
    /// All addresses of it.
    pub addresses: Vec<SocketAddr>,
    /// Where connections are encrypted.
    pub tls: Option<TlsSettings>,
    /// The host as requests name it.
    pub host_header: String,
}

/// All servers of a target; each that cannot be one is told.
pub fn find_servers(target: &TargetSpec) -> Result<Vec<Server>, Vec<String>> {
    let (mut servers, mut faults) = (Vec::new(), Vec::new());
    let mut config = None;
    for url in &target.endpoints {
        match find_server(target, url, &mut config) {
            Ok(server) => servers.push(server),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(servers) } else { Err(faults) }
}

fn find_server(
    target: &TargetSpec,
    url: &str,
    config: &mut Option<std::sync::Arc<rustls::ClientConfig>>,
) -> Result<Server, String> {
    let endpoint = Endpoint::parse(url)?;
    let host_header = endpoint.host_header(&target.bucket, target.style);
    let tls = if endpoint.is_tls {
        if config.is_none() {
            *config = Some(tls_config(target.ca_pem.as_deref())?);
        }
        let host = match target.style {
            BucketStyle::Path => endpoint.host.clone(),
            BucketStyle::Virtual => format!("{}.{}", target.bucket, endpoint.host),
        };
        config.as_ref().map(|config| TlsSettings::new(config, &host)).transpose()?
    } else {
        None
    };
    Ok(Server { addresses: endpoint.addresses()?, endpoint, tls, host_header })
}

/// What the path of a bucket's requests begins with: a slash at its end.
#[must_use]
pub fn bucket_path(bucket: &str, style: BucketStyle) -> Vec<u8> {
    let mut path = b"/".to_vec();
    if style == BucketStyle::Path {
        push_encoded(bucket.as_bytes(), false, &mut path);
        path.push(b'/');
    }
    path
}

/// What is wrong with a bucket's name.
#[must_use]
pub fn bucket_fault(bucket: &str) -> Option<String> {
    let is_name = bucket.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    if is_name && (3..=MAX_BUCKET_BYTES).contains(&bucket.len()) {
        return None;
    }
    Some(format!(
        "target.bucket is {bucket:?}; it must be 3 to {MAX_BUCKET_BYTES} letters, digits, '.', '-' and '_'."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_scheme_host_and_port() {
        for (url, is_tls, host, port, header) in [
            ("http://a.b:7070", false, "a.b", 7070, "bucket.a.b:7070"),
            ("https://s3.example/", true, "s3.example", 443, "bucket.s3.example"),
            ("http://[::1]:80", false, "::1", 80, "bucket.[::1]"),
            ("http://10.0.0.1", false, "10.0.0.1", 80, "bucket.10.0.0.1"),
        ] {
            let endpoint = Endpoint::parse(url).unwrap();
            assert_eq!(
                (endpoint.is_tls, endpoint.host.as_str(), endpoint.port),
                (is_tls, host, port)
            );
            assert_eq!(endpoint.host_header("bucket", BucketStyle::Virtual), header);
        }
        assert_eq!(bucket_path("b", BucketStyle::Path), b"/b/");
        assert_eq!(bucket_path("b", BucketStyle::Virtual), b"/");
    }

    #[test]
    fn what_is_no_endpoint_is_told() {
        for url in [
            "ftp://a",
            "http://",
            "http://a/b",
            "http://u@a",
            "http://a:0",
            "http://a:x",
            "http://[::1",
            "http://a b",
        ] {
            assert!(Endpoint::parse(url).is_err_and(|told| told.contains(url)), "{url}");
        }
    }

    #[test]
    fn an_address_is_its_own() {
        let endpoint = Endpoint::parse("http://127.0.0.1:9").unwrap();
        assert_eq!(endpoint.addresses().unwrap(), ["127.0.0.1:9".parse().unwrap()]);
    }

    #[test]
    fn a_bucket_has_a_name() {
        assert_eq!(bucket_fault("iolab-test.1"), None);
        assert!(bucket_fault("a/b").is_some_and(|told| told.contains("a/b")));
        assert!(bucket_fault("").is_some());
    }
}
