//! Checks whether the first bytes of a file have the type that its upload named.

/// The type of bytes about which nothing is promised.
pub const BYTES: &str = "application/octet-stream";

/// The type as which a file is downloaded that was uploaded as `declared` and begins with `bytes`: the same type, or
/// [`BYTES`] if the bytes are something else.
pub fn checked_type<'a>(declared: &'a str, bytes: &[u8]) -> &'a str {
    if fits(declared, bytes) { declared } else { BYTES }
}

fn fits(declared: &str, bytes: &[u8]) -> bool {
    let essence = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if is_textual(&essence) {
        return is_text(bytes);
    }
    let is_known = infer::is_mime_supported(&essence);
    match infer::get(bytes) {
        Some(found) => family(found.mime_type()) == family(&essence) || (!is_known && family(&essence) == essence),
        // A type that has no mark of its own cannot be recognised by its beginning.
        None => !is_known,
    }
}

/// Whether files of this type are text.
fn is_textual(essence: &str) -> bool {
    let (kind, name) = essence.split_once('/').unwrap_or_default();
    let named = ["json", "xml", "javascript", "yaml", "x-yaml", "csv", "sql"].contains(&name);
    kind == "text" || name.ends_with("+json") || name.ends_with("+xml") || (kind == "application" && named)
}

/// Whether `bytes` are text: by the rule of browsers, <https://mimesniff.spec.whatwg.org/#rules-for-text-or-binary>, or
/// UTF-8 that begins as nothing else. The last character may be cut.
fn is_text(bytes: &[u8]) -> bool {
    let has_mark = bytes.starts_with(b"\xfe\xff") || bytes.starts_with(b"\xff\xfe");
    let is_binary = |byte: &u8| matches!(byte, 0..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    let is_utf8 = std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true);
    has_mark || !bytes.iter().any(is_binary) || (is_utf8 && infer::get(bytes).is_none())
}

/// What the beginning of a file can show: one container may hold sound or pictures that move, and most documents of
/// offices are archives.
fn family(essence: &str) -> &str {
    let begins = |with: &[&str]| with.iter().any(|with| essence.starts_with(with));
    if begins(&["audio/", "video/"]) {
        "audio or video"
    } else if begins(&["image/"]) {
        "image"
    } else if begins(&["font/", "application/font"]) {
        "font"
    } else if essence.ends_with("zip") && !essence.ends_with("gzip")
        || begins(&[
            "application/vnd.openxmlformats-",
            "application/vnd.oasis.",
            "application/vnd.ms-",
            "application/msword",
        ])
        || begins(&["application/x-ole-storage", "application/java-archive"])
    {
        "archive"
    } else {
        essence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    const PDF: &[u8] = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3";
    const ZIP: &[u8] = b"PK\x03\x04\x14\0\x06\0\x08\0\0\0!\0";
    const HTML: &[u8] = b"<!DOCTYPE html><script>alert(1)</script>";
    const TEXT: &[u8] = b"BMW, VW\n";
    const WORD: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";

    #[test]
    fn a_type_is_kept_if_the_beginning_has_it() {
        for (declared, bytes, kept) in [
            ("image/png", PNG, true),
            ("IMAGE/PNG", PNG, true),
            ("image/jpeg", PNG, true),
            ("image/png", HTML, false),
            ("image/png", b"Hello", false),
            ("image/png", b"", false),
            ("video/mp4", PNG, false),
            ("application/pdf", PDF, true),
            ("application/pdf", HTML, false),
            ("application/pdf", ZIP, false),
            ("application/zip", ZIP, true),
            ("application/zip", PDF, false),
            ("application/epub+zip", ZIP, true),
            (WORD, ZIP, true),
            (WORD, HTML, false),
            ("text/plain; charset=utf-8", TEXT, true),
            ("text/plain", "Crème".as_bytes(), true),
            ("text/csv", b"Cr\xe8me;1\r\n", true),
            ("text/plain", b"\xff\xfea\0", true),
            ("text/plain", "\0é".as_bytes(), true),
            ("text/plain", b"\0\xc3", true),
            ("text/plain", b"\0\xff", false),
            ("text/plain", PNG, false),
            ("text/html", HTML, true),
            ("text/html", ZIP, false),
            ("application/json", b"{}", true),
            ("application/json", PNG, false),
            ("image/svg+xml", b"<svg/>", true),
            ("image/svg+xml", PNG, false),
            // Nothing is known about their beginnings.
            ("application/x-of-its-own", PNG, true),
            ("application/x-of-its-own", TEXT, true),
        ] {
            assert_eq!(checked_type(declared, bytes), if kept { declared } else { BYTES }, "{declared} {bytes:?}");
        }
        for bytes in [PNG, PDF, ZIP, HTML, TEXT, b""] {
            assert_eq!(checked_type(BYTES, bytes), BYTES);
        }
    }
}
