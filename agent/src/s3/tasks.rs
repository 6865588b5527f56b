//! All that is not measured: looking at servers, making the bucket, listing and removing.

use std::thread;

use serde_json::{Value, json};

use super::client::{Answer, Call, Client, RequestFault};
use super::endpoint::{Server, find_servers};
use super::error_class::ErrorClass;
use super::listing::{ListQuery, abort_upload, list_all, list_page, list_uploads};
use super::spec::Spec;
use crate::native::lines::print_line;

/// Requests by which a server is looked at.
const CHECK_REQUESTS: usize = 8;
/// The object below the prefix by which rights are tried.
const RIGHTS_KEY: &str = "rights";
/// Sentences on what could not be removed.
const MAX_EXAMPLES: usize = 5;
/// Prefixes that are told.
const MAX_PREFIXES: usize = 100_000;
/// Where a bucket is when requests name no place.
const DEFAULT_REGION: &str = "us-east-1";

/// Look at each server of the target.
pub fn check(spec: &Spec) -> Result<(), Vec<String>> {
    let servers = find_servers(&spec.target)?;
    let endpoints: Vec<Value> = servers.iter().map(|server| check_server(spec, server)).collect();
    print_line(&json!({ "check": { "endpoints": endpoints } }));
    Ok(())
}

fn check_server(spec: &Spec, server: &Server) -> Value {
    let mut client = Client::new(spec, server, 0);
    let query = ListQuery { page: Some(1), ..ListQuery::default() }.text();
    let list = Call { query: &query, ..Call::default() };
    let head = Call { method: "HEAD", ..Call::default() };
    // A list tells by its code what is wrong, which an answer to HEAD cannot.
    let first = client.call(&list);
    let connect_ns = client.connect_time.as_nanos() as u64;
    let tls = client.tls_facts();
    let answers: Vec<Answer> = (0..CHECK_REQUESTS).map_while(|_| client.call(&head).ok()).collect();
    let keeps_alive = client.connections <= 1 && !answers.is_empty();
    let bucket = match first.as_ref().map_err(|fault| fault.class) {
        Ok(_) => Some(true),
        Err(ErrorClass::NoSuchBucket) => Some(false),
        Err(_) => None,
    };
    let answer = answers.first().or(first.as_ref().ok());
    let server_name = answer.map(|answer| {
        String::from_utf8_lossy(&answer.head_text[answer.head.server.clone()]).into_owned()
    });
    let rejects_wrong_secret = first.is_ok().then(|| {
        let wrong = Spec { secret: spec.secret.with_wrong_key(), ..spec.clone() };
        Client::new(&wrong, server, 0).call(&list).is_err()
    });
    let refused = (first.is_ok() && !spec.prefix.is_empty())
        .then(|| refused_right(&mut client, &spec.prefix))
        .flatten();
    let fault = first.as_ref().err().or(refused.as_ref());
    let clock_ahead_ms = answer
        .and_then(Answer::clock_ahead_ms)
        .or_else(|| fault.and_then(|fault| fault.clock_ahead_ms));
    let reached = fault.is_none_or(|fault| {
        !matches!(
            fault.class,
            ErrorClass::ConnectRefused
                | ErrorClass::ConnectTimeout
                | ErrorClass::ConnectFailed
                | ErrorClass::Tls
        )
    });
    json!({
        "endpoint": server.endpoint.url,
        "addresses": server.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "reached": reached,
        "error": fault.map(|fault| fault.message.clone()),
        "error_class": fault.map(|fault| fault.class.name()),
        "server": server_name.filter(|name| !name.is_empty()),
        "connect_ns": connect_ns,
        "request_ns": answers.iter().map(|one| one.elapsed.as_nanos() as u64).collect::<Vec<_>>(),
        "ahead_ms": clock_ahead_ms,
        "keep_alive": keeps_alive,
        "bucket": bucket,
        "rejects_wrong_secret": rejects_wrong_secret,
        "tls": tls.map(|facts| json!({ "version": facts.version, "cipher": facts.cipher })),
    })
}

/// The first of the requests of a load that the server refuses below the prefix: an object is put,
/// read and removed. None where all are done.
fn refused_right(client: &mut Client, prefix: &str) -> Option<RequestFault> {
    let key = format!("{prefix}{RIGHTS_KEY}");
    let put = client.call(&Call { method: "PUT", key: &key, body: b"iolab", ..Call::default() });
    let read = put.and_then(|_| client.call(&Call { key: &key, ..Call::default() }));
    // Also where it could not be read back: it may be there.
    let removed = client.call(&Call { method: "DELETE", key: &key, ..Call::default() });
    read.and(removed).err()
}

/// Make the bucket where it is missing.
pub fn create_bucket(spec: &Spec) -> Result<(), Vec<String>> {
    let mut client = first_client(spec)?;
    let body = if spec.target.region == DEFAULT_REGION {
        String::new()
    } else {
        format!(
            "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
             <LocationConstraint>{}</LocationConstraint></CreateBucketConfiguration>",
            spec.target.region
        )
    };
    let head = Call { method: "HEAD", ..Call::default() };
    let created = if client.call(&head).is_ok() {
        false
    } else {
        let call = Call { method: "PUT", body: body.as_bytes(), ..Call::default() };
        match client.call(&call) {
            Ok(_) => true,
            // Another host was first.
            Err(_) if client.call(&head).is_ok() => false,
            Err(fault) => return Err(sentences(&fault)),
        }
    };
    print_line(&json!({ "bucket": { "created": created } }));
    Ok(())
}

/// Sum what lies below the prefix.
pub fn list_objects(spec: &Spec) -> Result<(), Vec<String>> {
    let mut client = first_client(spec)?;
    let (mut objects, mut bytes, mut keys) = (0_u64, 0_u64, Vec::new());
    let query = ListQuery { prefix: &spec.prefix, ..ListQuery::default() };
    let pages = list_all(&mut client, query, |page| {
        for (key, size) in page.objects {
            objects += 1;
            bytes = bytes.saturating_add(size);
            if spec.keys && (keys.len() as u64) < spec.max_keys {
                keys.push((key, size));
            }
        }
        Ok(())
    })
    .map_err(|fault| sentences(&fault))?;
    let uploads = list_uploads(&mut client, &spec.prefix).map_err(|fault| sentences(&fault))?;
    let mut sums = json!({
        "objects": objects, "bytes": bytes, "uploads": uploads.len(), "pages": pages,
    });
    if spec.keys {
        sums["keys"] = json!(keys);
    }
    print_line(&json!({ "list": sums }));
    Ok(())
}

/// What keys below the prefix begin with, up to a slash.
pub fn list_prefixes(spec: &Spec) -> Result<(), Vec<String>> {
    let mut client = first_client(spec)?;
    let mut prefixes = Vec::new();
    let query = ListQuery { prefix: &spec.prefix, delimiter: "/", ..ListQuery::default() };
    list_all(&mut client, query, |page| {
        prefixes.extend(page.prefixes);
        Ok(())
    })
    .map_err(|fault| sentences(&fault))?;
    // An upload that was never completed is below no prefix of objects.
    let uploads = list_uploads(&mut client, &spec.prefix).map_err(|fault| sentences(&fault))?;
    prefixes.extend(uploads.iter().filter_map(|upload| {
        let rest = upload.key.strip_prefix(&spec.prefix)?;
        Some(upload.key[..=spec.prefix.len() + rest.find('/')?].to_owned())
    }));
    prefixes.sort_unstable();
    prefixes.dedup();
    prefixes.truncate(MAX_PREFIXES);
    print_line(&json!({ "prefixes": prefixes }));
    Ok(())
}

/// Remove all that lies below the prefix, and uploads that were never completed.
pub fn delete(spec: &Spec) -> Result<(), Vec<String>> {
    let servers = find_servers(&spec.target)?;
    let mut lister = Client::new(spec, &servers[0], 0);
    let mut clients = Client::spread_over_servers(spec, &servers, spec.concurrency as usize);
    let mut removal = Removal::default();
    let query = ListQuery { prefix: &spec.prefix, ..ListQuery::default() };
    list_all(&mut lister, query, |page| {
        removal.remove_objects(&mut clients, &page.objects);
        Ok(())
    })
    .map_err(|fault| sentences(&fault))?;
    let uploads = list_uploads(&mut lister, &spec.prefix).map_err(|fault| sentences(&fault))?;
    for upload in &uploads {
        match abort_upload(&mut lister, upload) {
            Ok(()) => removal.uploads += 1,
            Err(fault) => removal.fail(&fault),
        }
    }
    let rest = list_page(&mut lister, &ListQuery { prefix: &spec.prefix, ..ListQuery::default() })
        .map_err(|fault| sentences(&fault))?;
    print_line(&json!({ "delete": {
        "objects": removal.objects,
        "bytes": removal.bytes,
        "uploads": removal.uploads,
        "failed": removal.failed,
        "left": rest.objects.len(),
        "examples": removal.examples,
    } }));
    Ok(())
}

#[derive(Debug, Default)]
struct Removal {
    objects: u64,
    bytes: u64,
    uploads: u64,
    failed: u64,
    examples: Vec<String>,
}

impl Removal {
    /// Remove the objects of a page, each client its part of them.
    fn remove_objects(&mut self, clients: &mut [Client], objects: &[(String, u64)]) {
        let size = objects.len().div_ceil(clients.len()).max(1);
        let parts: Vec<Self> = thread::scope(|scope| {
            let workers: Vec<_> = clients
                .iter_mut()
                .zip(objects.chunks(size))
                .map(|(client, part)| scope.spawn(move || remove_part(client, part)))
                .collect();
            workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
        });
        for part in parts {
            self.objects += part.objects;
            self.bytes = self.bytes.saturating_add(part.bytes);
            self.failed += part.failed;
            self.examples.extend(part.examples);
            self.examples.truncate(MAX_EXAMPLES);
        }
    }

    fn fail(&mut self, fault: &RequestFault) {
        self.failed += 1;
        if self.examples.len() < MAX_EXAMPLES {
            self.examples.push(fault.to_string());
        }
    }
}

fn remove_part(client: &mut Client, objects: &[(String, u64)]) -> Removal {
    let mut removal = Removal::default();
    for (key, bytes) in objects {
        match client.call_patiently(&Call { method: "DELETE", key, ..Call::default() }) {
            Err(fault) if fault.class != ErrorClass::NoSuchKey => removal.fail(&fault),
            _ => {
                removal.objects += 1;
                removal.bytes = removal.bytes.saturating_add(*bytes);
            }
        }
    }
    removal
}

/// The sums of the data set, by the formulas by which it is made.
pub fn plan_bytes(spec: &Spec) -> Result<(), Vec<String>> {
    let Some(set) = &spec.objects else { return Err(vec!["objects is missing.".into()]) };
    let range = spec.own_range();
    let (bytes, parts, largest) = set.sums(range);
    print_line(&json!({ "plan": {
        "objects": range.count, "bytes": bytes, "parts": parts, "largest_bytes": largest,
    } }));
    Ok(())
}

fn first_client(spec: &Spec) -> Result<Client, Vec<String>> {
    let servers = find_servers(&spec.target)?;
    Ok(Client::new(spec, &servers[0], 0))
}

/// A fault as what a task ends with.
pub fn sentences(fault: &RequestFault) -> Vec<String> {
    vec![format!("{fault}.")]
}
