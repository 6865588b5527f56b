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
            while !request.ends_with("\r\n\r\n") && reader.read_line(&mut request).unwrap() > 0 {}
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
    assert!(seen[1..].iter().all(|one| one.contains("X-aws-ec2-metadata-token: AQ==token\r\n")));
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
    assert!(server.join().unwrap().iter().all(|one| one.contains("Metadata-Flavor: Google\r\n")));
}

#[test]
fn azure_tells_types_and_sizes_of_disks() {
    let compute = r#"{"vmSize":"Standard_D8s_v5","location":"westeurope","storageProfile":{
        "osDisk":{"name":"os","diskSizeGB":"30","managedDisk":{"storageAccountType":"StandardSSD_LRS"}},
        "dataDisks":[{"name":"data","diskSizeGB":"1024","managedDisk":{"storageAccountType":"Premium_LRS"}}]}}"#;
    let (address, server) = serve(vec![("GET /metadata/instance/compute?", ok(compute))], 1);
    let told = ask(Cloud::Azure, address).unwrap();
    assert_eq!(told.instance_type.as_deref(), Some("Standard_D8s_v5"));
    let sizes: Vec<_> = told.volumes.iter().map(|one| (one.kind.as_str(), one.size_gib)).collect();
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
        let text = |one: Option<&str>| one.map(ToOwned::to_owned);
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
