//! Texts of the repository that a program needs while it runs.

/// The text of a file, whose path begins in the folder of the crate. A release build contains the text. A build of a
/// crate with debug assertions reads it when it is first needed, so that nothing is compiled because the text has changed.
#[macro_export]
macro_rules! repository_file {
    ($path:literal) => {{
        #[cfg(not(debug_assertions))]
        let text: &'static str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path));
        #[cfg(debug_assertions)]
        let text: &'static str = {
            static TEXT: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
                let file = concat!(env!("CARGO_MANIFEST_DIR"), "/", $path);
                std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"))
            });
            &TEXT
        };
        text
    }};
}
