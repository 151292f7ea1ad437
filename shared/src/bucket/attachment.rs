//! The header that makes a browser save a download instead of showing it.

use percent_encoding::utf8_percent_encode;

use crate::aws::signature::ENCODED;

/// The most characters of a name. A longer one is cut at its beginning, because its end says what the file is.
const LONGEST: usize = 128;

/// The value of `content-disposition` for a file that its owner calls `name`.
pub fn attachment(name: Option<&str>) -> String {
    let name: Vec<char> =
        name.unwrap_or_default().chars().map(|letter| if is_safe(letter) { letter } else { '_' }).collect();
    let end: String = name[name.len().saturating_sub(LONGEST)..].iter().collect();
    // A dot at the beginning hides a file, and Windows drops one at the end.
    let end = end.trim_matches(['.', ' ']);
    if end.is_empty() {
        return "attachment".to_owned();
    }
    // The first form is for programs that do not know the second one.
    let ascii: String =
        end.chars().map(|letter| if letter.is_ascii() && letter != '%' { letter } else { '_' }).collect();
    format!("attachment; filename=\"{ascii}\"; filename*=UTF-8\'\'{}", utf8_percent_encode(end, ENCODED))
}

/// Whether a file name may have `letter`. Marks of direction may make `exe` at the end of a name look like another type.
fn is_safe(letter: char) -> bool {
    let is_invisible =
        matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    !letter.is_control() && !is_invisible && !r#"/\:*?"<>|"#.contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_becomes_safe_and_keeps_its_end() {
        let long = format!("{}.pdf", "é".repeat(200));
        for (name, ascii, encoded) in [
            ("prices.pdf", "prices.pdf", "prices.pdf".to_owned()),
            ("Menü 1.pdf", "Men_ 1.pdf", "Men%C3%BC%201.pdf".to_owned()),
            ("../../etc/passwd", "_.._etc_passwd", "_.._etc_passwd".to_owned()),
            ("a\"; filename=\"b.exe", "a_; filename=_b.exe", "a_%3B%20filename%3D_b.exe".to_owned()),
            ("a\r\nx: y.txt", "a__x_ y.txt", "a__x_%20y.txt".to_owned()),
            ("a\u{202e}fdp.exe", "a_fdp.exe", "a_fdp.exe".to_owned()),
            ("100%25.txt", "100_25.txt", "100%2525.txt".to_owned()),
            (long.as_str(), &format!("{}.pdf", "_".repeat(124)), format!("{}.pdf", "%C3%A9".repeat(124))),
        ] {
            let wanted = format!("attachment; filename=\"{ascii}\"; filename*=UTF-8\'\'{encoded}");
            assert_eq!(attachment(Some(name)), wanted);
        }
        for nothing in [None, Some(""), Some("..."), Some(" . ")] {
            assert_eq!(attachment(nothing), "attachment");
        }
    }
}
