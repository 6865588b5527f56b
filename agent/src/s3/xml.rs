//! The few elements that are looked for in answers; nothing else of XML is read.

use std::borrow::Cow;

/// What stands in the first element of that name at or behind `start`, still escaped, and where it ends.
#[must_use]
pub fn element<'a>(text: &'a str, name: &str, start: usize) -> Option<(&'a str, usize)> {
    let rest = text.get(start..)?;
    let mut at = 0;
    loop {
        let open = at + rest[at..].find('<')? + 1;
        at = open;
        let Some(behind) = rest[open..].strip_prefix(name) else { continue };
        // Behind the name comes the end of the tag, or attributes.
        let Some(tag_end) = behind.find('>').filter(|_| behind.starts_with(['>', ' ', '/'])) else {
            continue;
        };
        let inner = open + name.len() + tag_end + 1;
        if rest[..inner].ends_with("/>") {
            return Some(("", start + inner));
        }
        let length = rest[inner..].find(&format!("</{name}>"))?;
        return Some((&rest[inner..inner + length], start + inner + length + name.len() + 3));
    }
}

/// The same, unescaped; None where there is no such element.
#[must_use]
pub fn element_text<'a>(text: &'a str, name: &str) -> Option<Cow<'a, str>> {
    element(text, name, 0).map(|(inner, _)| unescaped(inner))
}

/// All elements of that name, still escaped.
pub fn elements<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (inner, end) = element(text, name, at)?;
        at = end;
        Some(inner)
    })
}

/// A text without its escapes; one that is none of XML's stays.
#[must_use]
pub fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let escaped = rest.find(';').and_then(|end| Some((character(&rest[1..end])?, end + 1)));
        let (character, length) = escaped.unwrap_or(('&', 1));
        plain.push(character);
        rest = &rest[length..];
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

fn character(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"<?xml version="1.0"?><ListBucketResult xmlns="http://s3"><IsTruncated>true</IsTruncated>
        <KeyCount>2</KeyCount><Contents><Key>a&amp;b&#x41;&#66;</Key><Size>5</Size></Contents><Contents>
        <Key>c</Key><Size>7</Size></Contents><Prefix/><NextContinuationToken>t==</NextContinuationToken></ListBucketResult>"#;

    #[test]
    fn elements_are_found_by_their_whole_names() {
        assert_eq!(element_text(LIST, "IsTruncated").as_deref(), Some("true"));
        assert_eq!(element_text(LIST, "Prefix").as_deref(), Some(""));
        assert_eq!(element_text(LIST, "NextContinuationToken").as_deref(), Some("t=="));
        assert_eq!(element_text(LIST, "Truncated"), None);
        assert_eq!(element_text(LIST, "KeyMarker"), None);
        let keys: Vec<_> =
            elements(LIST, "Contents").filter_map(|one| element_text(one, "Key")).collect();
        assert_eq!(keys, ["a&bAB", "c"]);
    }

    #[test]
    fn what_is_cut_or_wrongly_escaped_does_no_harm() {
        for cut in 0..LIST.len() {
            let _ = elements(&LIST[..cut], "Contents").count();
        }
        assert_eq!(unescaped("a & b &none; &#xD800; &lt"), "a & b &none; &#xD800; &lt");
    }
}
