//! What lies below a prefix: objects, and uploads that were never completed.

use super::client::{Call, Client, RequestFault};
use super::error_class::ErrorClass;
use super::signature::push_encoded;
use super::xml::{element_text, elements};

/// Keys of a page: the most that servers give.
pub const PAGE_KEYS: u32 = 1000;

/// Where a list begins and how it goes on.
#[derive(Debug, Clone, Default)]
pub struct ListQuery<'a> {
    /// What all keys begin with.
    pub prefix: &'a str,
    /// Keys are told up to this behind the prefix alone.
    pub delimiter: &'a str,
    /// Keys behind this one alone.
    pub start_after: &'a str,
    /// Of the page before.
    pub token: Option<String>,
    /// Keys of a page.
    pub page: Option<u32>,
}

/// A page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListPage {
    /// Keys and bytes.
    pub objects: Vec<(String, u64)>,
    /// What keys begin with up to the delimiter.
    pub prefixes: Vec<String>,
    /// Where the next page begins; None for the last.
    pub token: Option<String>,
}

/// An upload that was never completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// Of the object that it was to become.
    pub key: String,
    /// Its own name.
    pub id: String,
}

impl ListQuery<'_> {
    /// As it stands behind the question mark.
    #[must_use]
    pub fn text(&self) -> String {
        let page = self.page.unwrap_or(PAGE_KEYS).to_string();
        encoded_query(&[
            ("continuation-token", self.token.as_deref().unwrap_or("")),
            ("delimiter", self.delimiter),
            ("list-type", "2"),
            ("max-keys", &page),
            ("prefix", self.prefix),
            ("start-after", self.start_after),
        ])
    }
}

/// A query of names and values in the order of names; without those that have no value.
#[must_use]
pub fn encoded_query(parts: &[(&str, &str)]) -> String {
    let mut text = Vec::new();
    for (name, value) in parts.iter().filter(|(_, value)| !value.is_empty()) {
        if !text.is_empty() {
            text.push(b'&');
        }
        text.extend_from_slice(name.as_bytes());
        text.push(b'=');
        push_encoded(value.as_bytes(), false, &mut text);
    }
    String::from_utf8(text).unwrap_or_default()
}

/// The page that an answer is; None for what is no list.
#[must_use]
pub fn parse_page(text: &str) -> Option<ListPage> {
    if !text.contains("<ListBucketResult") {
        return None;
    }
    let objects = elements(text, "Contents").filter_map(|one| {
        let bytes = element_text(one, "Size")?.parse().ok()?;
        Some((element_text(one, "Key")?.into_owned(), bytes))
    });
    let prefixes = elements(text, "CommonPrefixes")
        .filter_map(|one| element_text(one, "Prefix").map(std::borrow::Cow::into_owned));
    let is_truncated = element_text(text, "IsTruncated").as_deref() == Some("true");
    let token = element_text(text, "NextContinuationToken").map(std::borrow::Cow::into_owned);
    Some(ListPage {
        objects: objects.collect(),
        prefixes: prefixes.collect(),
        token: token.filter(|token| is_truncated && !token.is_empty()),
    })
}

/// Ask for one page.
pub fn list_page(client: &mut Client, query: &ListQuery) -> Result<ListPage, RequestFault> {
    let text = query.text();
    let answer = client.call_patiently(&Call { query: &text, ..Call::default() })?;
    parse_page(&answer.text()).ok_or_else(|| no_list(query.prefix))
}

/// All pages, each given to `take` when it has come; how many.
pub fn list_all(
    client: &mut Client,
    mut query: ListQuery,
    mut take: impl FnMut(ListPage) -> Result<(), RequestFault>,
) -> Result<u64, RequestFault> {
    let mut pages = 0;
    loop {
        let page = list_page(client, &query)?;
        pages += 1;
        let next = page.token.clone();
        take(page)?;
        // A server that tells the same token again would be asked for ever.
        if next.is_none() || next == query.token {
            return Ok(pages);
        }
        query.token = next;
    }
}

/// All uploads below a prefix that were never completed.
pub fn list_uploads(client: &mut Client, prefix: &str) -> Result<Vec<Upload>, RequestFault> {
    let mut uploads = Vec::new();
    let (mut key_marker, mut id_marker) = (String::new(), String::new());
    loop {
        let mut query = encoded_query(&[
            ("key-marker", &key_marker),
            ("max-uploads", "1000"),
            ("prefix", prefix),
            ("upload-id-marker", &id_marker),
        ]);
        query.push_str("&uploads=");
        let answer = client.call_patiently(&Call { query: &query, ..Call::default() })?;
        let text = answer.text();
        if !text.contains("<ListMultipartUploadsResult") {
            return Err(no_list(prefix));
        }
        let before = uploads.len();
        uploads.extend(elements(&text, "Upload").filter_map(|one| {
            let key = element_text(one, "Key")?.into_owned();
            Some(Upload { key, id: element_text(one, "UploadId")?.into_owned() })
        }));
        let is_truncated = element_text(&text, "IsTruncated").as_deref() == Some("true");
        if !is_truncated || uploads.len() == before {
            // Some servers do not look at the prefix.
            uploads.retain(|upload| upload.key.starts_with(prefix));
            return Ok(uploads);
        }
        let marker = |name| element_text(&text, name).unwrap_or_default().into_owned();
        (key_marker, id_marker) = (marker("NextKeyMarker"), marker("NextUploadIdMarker"));
    }
}

/// Have the server forget an upload; one that is not there is forgotten.
pub fn abort_upload(client: &mut Client, upload: &Upload) -> Result<(), RequestFault> {
    let query = encoded_query(&[("uploadId", &upload.id)]);
    let call = Call { method: "DELETE", key: &upload.key, query: &query, ..Call::default() };
    match client.call_patiently(&call) {
        Err(fault) if fault.class != ErrorClass::NoSuchUpload => Err(fault),
        _ => Ok(()),
    }
}

fn no_list(prefix: &str) -> RequestFault {
    let message = format!("the answer to a list below {prefix:?} is no list");
    RequestFault { class: ErrorClass::BadResponse, message, clock_ahead_ms: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_has_its_names_in_order_and_its_values_encoded() {
        let query = ListQuery { prefix: "a/b c", token: Some("t=".into()), ..ListQuery::default() };
        assert_eq!(
            query.text(),
            "continuation-token=t%3D&list-type=2&max-keys=1000&prefix=a%2Fb%20c"
        );
    }

    #[test]
    fn a_page_has_its_keys_and_its_successor() {
        let text = "<ListBucketResult xmlns='x'><IsTruncated>true</IsTruncated><Contents><Key>a&amp;1</Key>\
            <Size>5</Size></Contents><CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes>\
            <NextContinuationToken>n</NextContinuationToken></ListBucketResult>";
        let page = parse_page(text).unwrap();
        assert_eq!(page.objects, [("a&1".to_owned(), 5)]);
        assert_eq!(page.prefixes, ["p/"]);
        assert_eq!(page.token.as_deref(), Some("n"));
        assert_eq!(parse_page(&text.replace("true", "false")).unwrap().token, None);
        assert_eq!(parse_page("<html>"), None);
    }
}
