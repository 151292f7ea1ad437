//! The formats of an exported file: NDJSON has a JSON object in each line, CSV is for spreadsheets.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::{ExportFormat, ExportedRecord};
use crate::table::TableError;

/// The mark by which Excel recognises UTF-8.
const BYTE_ORDER_MARK: &str = "\u{feff}";
/// The characters with which a cell may begin a formula, in one width or the other.
const FORMULA: &[char] = &['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

impl ExportFormat {
    /// The type of the file.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Ndjson => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8",
        }
    }

    /// The beginning of the file, before its first row.
    pub(super) fn head(self, columns: &[String]) -> String {
        match self {
            Self::Ndjson => String::new(),
            Self::Csv => format!("{BYTE_ORDER_MARK}{}\r\n", columns.join(",")),
        }
    }

    /// Adds `row`, a JSON object.
    ///
    /// # Errors
    /// [`TableError::Broken`] where it is none.
    pub(super) fn add(
        self,
        file: &mut Vec<u8>,
        record: ExportedRecord,
        columns: &[String],
        row: &str,
    ) -> Result<(), TableError> {
        match self {
            Self::Ndjson => {
                let members = row.strip_prefix('{').unwrap_or(row);
                file.extend_from_slice(format!("{{\"record\":\"{}\",", record.as_str()).as_bytes());
                file.extend_from_slice(members.as_bytes());
                file.push(b'\n');
            }
            Self::Csv => {
                // The error itself would quote the row.
                let broken = |_| TableError::Broken("an exported row is no object".into());
                let row: HashMap<String, &RawValue> = serde_json::from_str(row).map_err(broken)?;
                let cells: Vec<String> = columns
                    .iter()
                    .map(|name| row.get(name).map_or_else(String::new, |value| cell(value.get())))
                    .collect();
                file.extend_from_slice(cells.join(",").as_bytes());
                file.extend_from_slice(b"\r\n");
            }
        }
        Ok(())
    }
}

/// The cell of a JSON value: a text without its quotes, nothing for null, any other value as it is.
fn cell(json: &str) -> String {
    if json == "null" {
        return String::new();
    }
    let text = if json.starts_with('"') { serde_json::from_str(json).ok() } else { None };
    let is_text = text.is_some();
    let value = text.unwrap_or_else(|| json.to_owned());
    // A spreadsheet would run the text. A number may begin with a minus.
    let value = if is_text && value.starts_with(FORMULA) { format!("'{value}") } else { value };
    if value.contains([',', ';', '"', '\r', '\n', '\t']) {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_the_value_and_begins_no_formula() {
        for (json, wanted) in [
            ("null", ""),
            ("true", "true"),
            ("-1.5", "-1.5"),
            (r#""plain""#, "plain"),
            (r#""a,b""#, "\"a,b\""),
            (r#""say \"hi\"""#, "\"say \"\"hi\"\"\""),
            (r#""two\nlines""#, "\"two\nlines\""),
            (r#"{"a":[1,"b"]}"#, "\"{\"\"a\"\":[1,\"\"b\"\"]}\""),
            (r#""=1+1""#, "'=1+1"),
            (r#""+491701234567""#, "'+491701234567"),
            (r#""-2""#, "'-2"),
            (r#""@SUM(A1)""#, "'@SUM(A1)"),
            (r#""\t=1""#, "\"'\t=1\""),
            (r#""\r=1""#, "\"'\r=1\""),
            (r#""\n=1""#, "\"'\n=1\""),
            (r#""＝1""#, "'＝1"),
            (r#""=HYPERLINK(\"https://x\",1)""#, "\"'=HYPERLINK(\"\"https://x\"\",1)\""),
            (r#""""#, ""),
        ] {
            assert_eq!(cell(json), wanted, "{json}");
        }
    }

    #[test]
    fn a_row_has_the_columns_in_their_order() {
        let columns = ["id".to_owned(), "name".to_owned(), "none".to_owned()];
        let mut file = ExportFormat::Csv.head(&columns).into_bytes();
        ExportFormat::Csv.add(&mut file, ExportedRecord::Tag, &columns, r#"{"name":"é","id":"1"}"#).unwrap();
        assert_eq!(String::from_utf8(file).unwrap(), "\u{feff}id,name,none\r\n1,é,\r\n");
        let mut file = ExportFormat::Ndjson.head(&columns).into_bytes();
        ExportFormat::Ndjson.add(&mut file, ExportedRecord::Tag, &columns, r#"{"name":"é","id":"1"}"#).unwrap();
        assert_eq!(String::from_utf8(file).unwrap(), "{\"record\":\"tag\",\"name\":\"é\",\"id\":\"1\"}\n");
    }
}
