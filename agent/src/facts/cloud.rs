//! What a cloud's metadata service tells of this machine, asked only where the controller says so.
//!
//! The firmware names the cloud, so that no other machine is ever asked at the link-local address.
//! What comes back is another's: it is bounded in time and size, and only plain words of it are
//! kept.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

use super::host::MachineFacts;

/// Where all these clouds have their service.
const SERVICE: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)), 80);
/// The service is on the same node and answers within milliseconds; all requests together.
const PATIENCE: Duration = Duration::from_secs(3);
/// The whole description of a machine with its disks has some kilobytes.
const MAX_ANSWER_BYTES: u64 = 256 << 10;
/// Instance types and names of volumes are shorter.
const MAX_WORD_CHARS: usize = 80;
/// No machine has more volumes.
const MAX_VOLUMES: usize = 256;
/// How Azure's machines are known by their firmware.
const AZURE_TAG: &str = "7783-7084-3265-9085-8269-3286-77";
/// A token is asked for right before it is used.
const AWS_TOKEN: &str = "X-aws-ec2-metadata-token-ttl-seconds: 60\r\n";

/// What the service tells.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are described in schema/wire.json")]
pub struct CloudFacts {
    pub provider: &'static str,
    pub instance_type: Option<String>,
    pub zone: Option<String>,
    pub volumes: Vec<CloudVolume>,
}

/// One volume.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the fields are described in schema/wire.json")]
pub struct CloudVolume {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub size_gib: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Provider {
    Aws,
    Gcp,
    Azure,
}

/// Ask the service of the cloud that the firmware names; None with a fault where that fails.
pub fn cloud_facts(machine: &MachineFacts, faults: &mut Vec<String>) -> Option<CloudFacts> {
    let Some(cloud) = detect_provider(machine) else {
        faults.push("The firmware names no cloud whose metadata service is known.".into());
        return None;
    };
    query_provider(cloud, SERVICE)
        .map_err(|why| faults.push(format!("The cloud's metadata service did not answer: {why}.")))
        .ok()
}

fn detect_provider(machine: &MachineFacts) -> Option<Provider> {
    match (machine.vendor.as_deref(), machine.asset_tag.as_deref()) {
        (Some("Amazon EC2"), _) => Some(Provider::Aws),
        (Some("Google"), _) => Some(Provider::Gcp),
        (_, Some(AZURE_TAG)) => Some(Provider::Azure),
        _ => None,
    }
}

type QueryResult<T> = Result<T, String>;

fn query_provider(cloud: Provider, service: SocketAddr) -> QueryResult<CloudFacts> {
    let service = MetadataService { address: service, deadline: Instant::now() + PATIENCE };
    match cloud {
        Provider::Aws => aws_facts(&service),
        Provider::Gcp => gcp_facts(&service),
        Provider::Azure => azure_facts(&service),
    }
}

/// Version 2 of the service, which wants a token; it does not tell the types of volumes.
fn aws_facts(service: &MetadataService) -> QueryResult<CloudFacts> {
    let token = service.request("PUT", "/latest/api/token", AWS_TOKEN)?;
    let token = header_safe_token(&token).ok_or("its token is no word")?;
    let header = format!("X-aws-ec2-metadata-token: {token}\r\n");
    let get = |path: &str| service.request("GET", &format!("/latest/meta-data/{path}"), &header);
    Ok(CloudFacts {
        provider: "Amazon EC2",
        instance_type: short_word(&get("instance-type")?),
        zone: get("placement/availability-zone").ok().and_then(|zone| short_word(&zone)),
        volumes: Vec::new(),
    })
}

fn gcp_facts(service: &MetadataService) -> QueryResult<CloudFacts> {
    let get = |path: &str| {
        service.request(
            "GET",
            &format!("/computeMetadata/v1/instance/{path}"),
            "Metadata-Flavor: Google\r\n",
        )
    };
    // Both are paths, `projects/1/machineTypes/n2-standard-8`.
    let last = |text: String| text.trim().rsplit('/').next().and_then(short_word);
    let disks: Value = parse_json(&get("disks/?recursive=true")?)?;
    Ok(CloudFacts {
        provider: "Google Cloud",
        instance_type: last(get("machine-type")?),
        zone: get("zone").ok().and_then(last),
        volumes: array_items(&disks)
            .filter_map(|disk| parse_volume(&disk["deviceName"], &disk["type"], &Value::Null))
            .collect(),
    })
}

fn azure_facts(service: &MetadataService) -> QueryResult<CloudFacts> {
    let path = "/metadata/instance/compute?api-version=2021-02-01&format=json";
    let compute = parse_json(&service.request("GET", path, "Metadata: true\r\n")?)?;
    let disks = &compute["storageProfile"];
    let every = std::iter::once(&disks["osDisk"]).chain(array_items(&disks["dataDisks"]));
    Ok(CloudFacts {
        provider: "Azure",
        instance_type: compute["vmSize"].as_str().and_then(short_word),
        zone: compute["location"].as_str().and_then(short_word),
        volumes: every
            .filter_map(|disk| {
                let kind = &disk["managedDisk"]["storageAccountType"];
                parse_volume(&disk["name"], kind, &disk["diskSizeGB"])
            })
            .take(MAX_VOLUMES)
            .collect(),
    })
}

fn array_items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten().take(MAX_VOLUMES)
}

fn parse_volume(name: &Value, kind: &Value, gib: &Value) -> Option<CloudVolume> {
    // Azure writes sizes as texts.
    let size_gib = gib.as_u64().or_else(|| gib.as_str()?.parse().ok());
    Some(CloudVolume {
        name: short_word(name.as_str()?)?,
        kind: short_word(kind.as_str()?)?,
        size_gib,
    })
}

fn parse_json(text: &str) -> QueryResult<Value> {
    serde_json::from_str(text).map_err(|_| "it is no JSON".into())
}

/// The text as one short word of letters, digits and `. _ -`; None for anything else.
fn short_word(text: &str) -> Option<String> {
    let text = text.trim();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let fits = !text.is_empty() && text.len() <= MAX_WORD_CHARS && text.chars().all(is_plain);
    fits.then(|| text.to_owned())
}

/// A token that may stand in a header: no white space, no line end.
fn header_safe_token(token: &str) -> Option<&str> {
    let token = token.trim();
    let fits =
        !token.is_empty() && token.len() <= 512 && token.bytes().all(|b| b.is_ascii_graphic());
    fits.then_some(token)
}

/// A service, and until when it may take.
struct MetadataService {
    address: SocketAddr,
    deadline: Instant,
}

impl MetadataService {
    /// The body of an answer with status 200; no proxy is used and no redirection followed.
    fn request(&self, method: &str, path: &str, headers: &str) -> QueryResult<String> {
        let mut stream = TcpStream::connect_timeout(&self.address, self.time_left()?)
            .map_err(request_error_text)?;
        stream.set_write_timeout(Some(self.time_left()?)).map_err(request_error_text)?;
        // HTTP/1.0: the answer ends with the connection and never comes in chunks.
        let length = if method == "PUT" { "Content-Length: 0\r\n" } else { "" };
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: {}\r\n{headers}{length}\r\n",
            self.address.ip()
        );
        stream.write_all(request.as_bytes()).map_err(request_error_text)?;
        let mut answer = Vec::new();
        let mut piece = [0; 4096];
        loop {
            stream.set_read_timeout(Some(self.time_left()?)).map_err(request_error_text)?;
            let count = stream.read(&mut piece).map_err(request_error_text)?;
            answer.extend_from_slice(&piece[..count]);
            if answer.len() as u64 > MAX_ANSWER_BYTES {
                return Err(format!("its answer has more than {MAX_ANSWER_BYTES} bytes"));
            }
            if count == 0 || is_complete(&answer) {
                return parse_body(&answer);
            }
        }
    }

    fn time_left(&self) -> QueryResult<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(format!("{} s are over", PATIENCE.as_secs())) } else { Ok(left) }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands it over")]
fn request_error_text(error: std::io::Error) -> String {
    error.to_string()
}

const HEAD_END: &[u8] = b"\r\n\r\n";

/// Where the body begins, once the head is there.
fn body_start(answer: &[u8]) -> Option<usize> {
    answer.windows(HEAD_END.len()).position(|four| four == HEAD_END).map(|at| at + HEAD_END.len())
}

/// The bytes that the head promises, where it does.
fn content_length(head: &str) -> Option<usize> {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    lengths.next()?.1.trim().parse().ok()
}

/// A server that keeps the connection open has said how long its answer is.
fn is_complete(answer: &[u8]) -> bool {
    let Some(start) = body_start(answer) else { return false };
    let head = String::from_utf8_lossy(&answer[..start]);
    content_length(&head).is_some_and(|length| answer.len() - start >= length)
}

fn parse_body(answer: &[u8]) -> QueryResult<String> {
    let start = body_start(answer).ok_or("it broke off")?;
    let head = String::from_utf8_lossy(&answer[..start]);
    let status = head.split_ascii_whitespace().nth(1).unwrap_or_default();
    if status != "200" {
        return Err(format!(
            "its status is {}",
            short_word(status).unwrap_or_else(|| "none".into())
        ));
    }
    let body = &answer[start..];
    let length = content_length(&head).unwrap_or(body.len());
    if body.len() < length {
        return Err("it broke off".into());
    }
    String::from_utf8(body[..length].to_vec()).map_err(|_| "it is no text".into())
}

#[cfg(test)]
mod tests {
    //! Against a service of our own on loopback.

    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Answers connections by the first of `answers` whose beginning the request has, once each has
    /// come whole; the requests.
    fn serve(
        answers: Vec<(&'static str, String)>,
        count: usize,
    ) -> (SocketAddr, thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let mut seen = Vec::new();
            for _ in 0..count {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = String::new();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while !request.ends_with("\r\n\r\n") && reader.read_line(&mut request).unwrap() > 0
                {
                }
                let answer = answers.iter().find(|(start, _)| request.starts_with(start));
                let answer = answer.map_or("HTTP/1.0 404 Not Found\r\n\r\n", |(_, answer)| answer);
                let _ = stream.write_all(answer.as_bytes());
                seen.push(request);
            }
            seen
        });
        (address, server)
    }

    fn ok(body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }

    #[test]
    fn aws_is_asked_with_a_token() {
        let (address, server) = serve(
            vec![
                ("PUT /latest/api/token ", ok("AQ==token")),
                ("GET /latest/meta-data/instance-type ", ok("i4i.2xlarge")),
                ("GET /latest/meta-data/placement/availability-zone ", ok("eu-central-1a")),
            ],
            3,
        );
        let told = query_provider(Provider::Aws, address).unwrap();
        assert_eq!(told.instance_type.as_deref(), Some("i4i.2xlarge"));
        assert_eq!(told.zone.as_deref(), Some("eu-central-1a"));
        assert_eq!(told.volumes, []);
        let seen = server.join().unwrap();
        assert!(seen[0].contains("X-aws-ec2-metadata-token-ttl-seconds: 60\r\n"));
        assert!(
            seen[1..].iter().all(|one| one.contains("X-aws-ec2-metadata-token: AQ==token\r\n"))
        );
    }

    #[test]
    fn google_tells_types_of_disks() {
        let disks = r#"[{"deviceName":"boot","type":"PERSISTENT-BALANCED","index":0},
        {"deviceName":"bad name","type":"PERSISTENT-SSD"},{"type":1}]"#;
        let (address, server) = serve(
            vec![
                ("GET /computeMetadata/v1/instance/disks/", ok(disks)),
                (
                    "GET /computeMetadata/v1/instance/machine-type ",
                    ok("projects/1/machineTypes/n2-standard-8"),
                ),
                ("GET /computeMetadata/v1/instance/zone ", ok("projects/1/zones/europe-west3-a")),
            ],
            3,
        );
        let told = query_provider(Provider::Gcp, address).unwrap();
        assert_eq!(told.instance_type.as_deref(), Some("n2-standard-8"));
        assert_eq!(told.zone.as_deref(), Some("europe-west3-a"));
        let boot =
            CloudVolume { name: "boot".into(), kind: "PERSISTENT-BALANCED".into(), size_gib: None };
        assert_eq!(told.volumes, [boot]);
        assert!(
            server.join().unwrap().iter().all(|one| one.contains("Metadata-Flavor: Google\r\n"))
        );
    }

    #[test]
    fn azure_tells_types_and_sizes_of_disks() {
        let compute = r#"{"vmSize":"Standard_D8s_v5","location":"westeurope","storageProfile":{
        "osDisk":{"name":"os","diskSizeGB":"30","managedDisk":{"storageAccountType":"StandardSSD_LRS"}},
        "dataDisks":[{"name":"data","diskSizeGB":"1024","managedDisk":{"storageAccountType":"Premium_LRS"}}]}}"#;
        let (address, server) = serve(vec![("GET /metadata/instance/compute?", ok(compute))], 1);
        let told = query_provider(Provider::Azure, address).unwrap();
        assert_eq!(told.instance_type.as_deref(), Some("Standard_D8s_v5"));
        let sizes: Vec<_> =
            told.volumes.iter().map(|one| (one.kind.as_str(), one.size_gib)).collect();
        assert_eq!(sizes, [("StandardSSD_LRS", Some(30)), ("Premium_LRS", Some(1024))]);
        assert!(server.join().unwrap()[0].contains("Metadata: true\r\n"));
    }

    #[test]
    fn hostile_and_broken_answers_are_faults() {
        let endless = format!("HTTP/1.0 200 OK\r\n\r\n{}", "x".repeat(300 << 10));
        for (answer, fault) in [
            ("HTTP/1.0 401 Unauthorized\r\n\r\n".to_owned(), "401"),
            ("HTTP/1.0 200 OK\r\nContent-Length: 99\r\n\r\n{}".to_owned(), "broke off"),
            ("nonsense".to_owned(), "broke off"),
            (ok("{"), "no JSON"),
            (endless, "262144"),
        ] {
            let (address, server) = serve(vec![("GET ", answer)], 1);
            let told = query_provider(Provider::Azure, address).unwrap_err();
            assert!(told.contains(fault), "{told}");
            server.join().unwrap();
        }
        let (address, server) = serve(vec![("PUT ", ok("a\r\nInjected: header"))], 1);
        assert!(query_provider(Provider::Aws, address).is_err());
        server.join().unwrap();
    }

    #[test]
    fn a_service_that_says_nothing_is_left_in_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let service =
            MetadataService { address, deadline: Instant::now() + Duration::from_millis(50) };
        assert!(service.request("GET", "/", "").is_err());
        drop(listener);
    }

    #[test]
    fn only_a_cloud_that_the_firmware_names_is_asked() {
        let named_by = |vendor: Option<&str>, tag: Option<&str>| {
            let text = |value: Option<&str>| value.map(ToOwned::to_owned);
            detect_provider(&MachineFacts {
                vendor: text(vendor),
                product: None,
                asset_tag: text(tag),
            })
        };
        assert_eq!(named_by(Some("Amazon EC2"), None), Some(Provider::Aws));
        assert_eq!(named_by(Some("Google"), None), Some(Provider::Gcp));
        assert_eq!(named_by(Some("Microsoft Corporation"), Some(AZURE_TAG)), Some(Provider::Azure));
        assert_eq!(named_by(Some("Microsoft Corporation"), None), None);
        let mut faults = Vec::new();
        let none = MachineFacts { vendor: Some("QEMU".into()), product: None, asset_tag: None };
        assert_eq!(cloud_facts(&none, &mut faults), None);
        assert_eq!(faults.len(), 1);
    }
}
