//! The cause of an error as text, for logs.

use std::fmt::Write as _;

/// The messages of an error, from the outermost to the root. `Debug` is not used, because it could print the item that
/// was written.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        // Writing to a string cannot fail.
        let _ = write!(text, ": {cause}");
        source = cause.source();
    }
    text
}
