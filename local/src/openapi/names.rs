//! The names in the document, which become names in clients of other languages.

/// The name of the component with this title. A generator of Python names a variable of a class `Event` as its member
/// `event`, and one of a class `ContactIds` as its member `contact_ids`.
pub(super) fn component_name(title: &str) -> String {
    match title {
        "Event" => "LoggedEvent".to_owned(),
        ids if ids.ends_with("Ids") => format!("Many{ids}"),
        other => other.to_owned(),
    }
}
