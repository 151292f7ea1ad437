//! The names in the document, which become names in clients of other languages.

use crate::template::camel_case;

/// The name of an operation in clients of other languages.
pub fn operation_id(kebab_case: &str) -> String {
    let name = camel_case(kebab_case);
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect()
}

/// The name of the component with this title. A generator of Python names a variable of a class `Event` as its member
/// `event`, and one of a class `ContactIds` as its member `contact_ids`.
pub(super) fn component_name(title: &str) -> String {
    match title {
        "Event" => "LoggedEvent".to_owned(),
        ids if ids.ends_with("Ids") => format!("Many{ids}"),
        other => other.to_owned(),
    }
}
