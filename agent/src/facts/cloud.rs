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
const ANSWER_BYTES_MOST: u64 = 256 << 10;
/// Instance types and names of volumes are shorter.
const WORD_CHARS_MOST: usize = 80;
/// No machine has more volumes.
const VOLUMES_MOST: usize = 256;
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
enum Cloud {
    Aws,
    Gcp,
    Azure,
}

/// Ask the service of the cloud that the firmware names; None with a fault where that fails.
pub fn cloud(machine: &MachineFacts, faults: &mut Vec<String>) -> Option<CloudFacts> {
    let Some(cloud) = named(machine) else {
        faults.push("The firmware names no cloud whose metadata service is known.".into());
        return None;
    };
    ask(cloud, SERVICE)
        .map_err(|why| faults.push(format!("The cloud's metadata service did not answer: {why}.")))
        .ok()
}

fn named(machine: &MachineFacts) -> Option<Cloud> {
    match (machine.vendor.as_deref(), machine.asset_tag.as_deref()) {
        (Some("Amazon EC2"), _) => Some(Cloud::Aws),
        (Some("Google"), _) => Some(Cloud::Gcp),
        (_, Some(AZURE_TAG)) => Some(Cloud::Azure),
        _ => None,
    }
}

type Told<T> = Result<T, String>;

fn ask(cloud: Cloud, service: SocketAddr) -> Told<CloudFacts> {
    let service = Service { address: service, until: Instant::now() + PATIENCE };
    match cloud {
        Cloud::Aws => aws(&service),
        Cloud::Gcp => gcp(&service),
        Cloud::Azure => azure(&service),
    }
}

/// Version 2 of the service, which wants a token; it does not tell the types of volumes.
fn aws(service: &Service) -> Told<CloudFacts> {
    let token = service.request("PUT", "/latest/api/token", AWS_TOKEN)?;
    let token = plain(&token).ok_or("its token is no word")?;
    let header = format!("X-aws-ec2-metadata-token: {token}\r\n");
    let get = |path: &str| service.request("GET", &format!("/latest/meta-data/{path}"), &header);
    Ok(CloudFacts {
        provider: "Amazon EC2",
        instance_type: word(&get("instance-type")?),
        zone: get("placement/availability-zone").ok().and_then(|zone| word(&zone)),
        volumes: Vec::new(),
    })
}

fn gcp(service: &Service) -> Told<CloudFacts> {
    let get = |path: &str| {
        service.request(
            "GET",
            &format!("/computeMetadata/v1/instance/{path}"),
            "Metadata-Flavor: Google\r\n",
        )
    };
    // Both are paths, `projects/1/machineTypes/n2-standard-8`.
    let last = |text: String| text.trim().rsplit('/').next().and_then(word);
    let disks: Value = parsed(&get("disks/?recursive=true")?)?;
    Ok(CloudFacts {
        provider: "Google Cloud",
        instance_type: last(get("machine-type")?),
        zone: get("zone").ok().and_then(last),
        volumes: rows(&disks)
            .filter_map(|disk| volume(&disk["deviceName"], &disk["type"], &Value::Null))
            .collect(),
    })
}

fn azure(service: &Service) -> Told<CloudFacts> {
    let path = "/metadata/instance/compute?api-version=2021-02-01&format=json";
    let compute = parsed(&service.request("GET", path, "Metadata: true\r\n")?)?;
    let disks = &compute["storageProfile"];
    let every = std::iter::once(&disks["osDisk"]).chain(rows(&disks["dataDisks"]));
    Ok(CloudFacts {
        provider: "Azure",
        instance_type: compute["vmSize"].as_str().and_then(word),
        zone: compute["location"].as_str().and_then(word),
        volumes: every
            .filter_map(|disk| {
                let kind = &disk["managedDisk"]["storageAccountType"];
                volume(&disk["name"], kind, &disk["diskSizeGB"])
            })
            .take(VOLUMES_MOST)
            .collect(),
    })
}

fn rows(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten().take(VOLUMES_MOST)
}

fn volume(name: &Value, kind: &Value, gib: &Value) -> Option<CloudVolume> {
    // Azure writes sizes as texts.
    let size_gib = gib.as_u64().or_else(|| gib.as_str()?.parse().ok());
    Some(CloudVolume { name: word(name.as_str()?)?, kind: word(kind.as_str()?)?, size_gib })
}

fn parsed(text: &str) -> Told<Value> {
    serde_json::from_str(text).map_err(|_| "it is no JSON".into())
}

/// The text as one short word of letters, digits and `. _ -`; None for anything else.
fn word(text: &str) -> Option<String> {
    let text = text.trim();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let fits = !text.is_empty() && text.len() <= WORD_CHARS_MOST && text.chars().all(is_plain);
    fits.then(|| text.to_owned())
}

/// A token that may stand in a header: no white space, no line end.
fn plain(token: &str) -> Option<&str> {
    let token = token.trim();
    let fits =
        !token.is_empty() && token.len() <= 512 && token.bytes().all(|b| b.is_ascii_graphic());
    fits.then_some(token)
}

/// A service, and until when it may take.
struct Service {
    address: SocketAddr,
    until: Instant,
}

impl Service {
    /// The body of an answer with status 200; no proxy is used and no redirection followed.
    fn request(&self, method: &str, path: &str, headers: &str) -> Told<String> {
        let mut stream = TcpStream::connect_timeout(&self.address, self.left()?).map_err(said)?;
        stream.set_write_timeout(Some(self.left()?)).map_err(said)?;
        // HTTP/1.0: the answer ends with the connection and never comes in chunks.
        let length = if method == "PUT" { "Content-Length: 0\r\n" } else { "" };
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: {}\r\n{headers}{length}\r\n",
            self.address.ip()
        );
        stream.write_all(request.as_bytes()).map_err(said)?;
        let mut answer = Vec::new();
        let mut piece = [0; 4096];
        loop {
            stream.set_read_timeout(Some(self.left()?)).map_err(said)?;
            let count = stream.read(&mut piece).map_err(said)?;
            answer.extend_from_slice(&piece[..count]);
            if answer.len() as u64 > ANSWER_BYTES_MOST {
                return Err(format!("its answer has more than {ANSWER_BYTES_MOST} bytes"));
            }
            if count == 0 || is_whole(&answer) {
                return body_of(&answer);
            }
        }
    }

    fn left(&self) -> Told<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(format!("{} s are over", PATIENCE.as_secs())) } else { Ok(left) }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands it over")]
fn said(error: std::io::Error) -> String {
    error.to_string()
}

const HEAD_END: &[u8] = b"\r\n\r\n";

/// Where the body begins, once the head is there.
fn body_start(answer: &[u8]) -> Option<usize> {
    answer.windows(HEAD_END.len()).position(|four| four == HEAD_END).map(|at| at + HEAD_END.len())
}

/// The bytes that the head promises, where it does.
fn promised(head: &str) -> Option<usize> {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    lengths.next()?.1.trim().parse().ok()
}

/// A server that keeps the connection open has said how long its answer is.
fn is_whole(answer: &[u8]) -> bool {
    let Some(start) = body_start(answer) else { return false };
    let head = String::from_utf8_lossy(&answer[..start]);
    promised(&head).is_some_and(|length| answer.len() - start >= length)
}

fn body_of(answer: &[u8]) -> Told<String> {
    let start = body_start(answer).ok_or("it broke off")?;
    let head = String::from_utf8_lossy(&answer[..start]);
    let status = head.split_ascii_whitespace().nth(1).unwrap_or_default();
    if status != "200" {
        return Err(format!("its status is {}", word(status).unwrap_or_else(|| "none".into())));
    }
    let body = &answer[start..];
    let length = promised(&head).unwrap_or(body.len());
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
        let told = ask(Cloud::Aws, address).unwrap();
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
        let told = ask(Cloud::Gcp, address).unwrap();
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
        let told = ask(Cloud::Azure, address).unwrap();
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
            let told = ask(Cloud::Azure, address).unwrap_err();
            assert!(told.contains(fault), "{told}");
            server.join().unwrap();
        }
        let (address, server) = serve(vec![("PUT ", ok("a\r\nInjected: header"))], 1);
        assert!(ask(Cloud::Aws, address).is_err());
        server.join().unwrap();
    }

    #[test]
    fn a_service_that_says_nothing_is_left_in_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let service = Service { address, until: Instant::now() + Duration::from_millis(50) };
        assert!(service.request("GET", "/", "").is_err());
        drop(listener);
    }

    #[test]
    fn only_a_cloud_that_the_firmware_names_is_asked() {
        let named_by = |vendor: Option<&str>, tag: Option<&str>| {
            let text = |value: Option<&str>| value.map(ToOwned::to_owned);
            named(&MachineFacts { vendor: text(vendor), product: None, asset_tag: text(tag) })
        };
        assert_eq!(named_by(Some("Amazon EC2"), None), Some(Cloud::Aws));
        assert_eq!(named_by(Some("Google"), None), Some(Cloud::Gcp));
        assert_eq!(named_by(Some("Microsoft Corporation"), Some(AZURE_TAG)), Some(Cloud::Azure));
        assert_eq!(named_by(Some("Microsoft Corporation"), None), None);
        let mut faults = Vec::new();
        let none = MachineFacts { vendor: Some("QEMU".into()), product: None, asset_tag: None };
        assert_eq!(cloud(&none, &mut faults), None);
        assert_eq!(faults.len(), 1);
    }
}
