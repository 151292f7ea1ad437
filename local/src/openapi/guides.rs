//! The guides of the document: the files of `docs/guides`, as sections of the description of the API. A test runs their
//! commands.

use std::path::Path;

/// The folder of the guides.
pub const FOLDER: &str = "docs/guides";

/// The guides in the order in which a reader needs them. All others need the first one.
pub const GUIDES: [&str; 6] = [
    "before-you-begin",
    "first-assistant",
    "send-a-campaign",
    "receive-events",
    "import-contacts",
    "connect-a-runtime",
];

/// The guide `name` of the checkout at `root`.
///
/// # Panics
/// Where its file cannot be read.
pub fn guide(root: &Path, name: &str) -> String {
    let file = root.join(FOLDER).join(format!("{name}.md"));
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// All guides, one behind the other. A page of the document shows each heading as a section.
pub(super) fn all(root: &Path) -> String {
    GUIDES.map(|name| guide(root, name)).join("\n")
}
