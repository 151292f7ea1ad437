//! `choice!` declares a fixed list of words, by which lists can be filtered.

/// Declares a fixed list of words: an enum that is parsed, printed, stored and described as text.
#[macro_export]
macro_rules! choice {
    (
        $(#[doc = $doc:literal])*
        pub enum $Name:ident { $($(#[doc = $word_doc:literal])* $Word:ident = $text:literal,)* }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ::serde::Serialize, ::serde::Deserialize)]
        pub enum $Name { $(#[doc = concat!("`", $text, "`")] $(#[doc = $word_doc])* #[serde(rename = $text)] $Word,)* }

        impl $Name {
            /// Every word, in the order of its declaration.
            pub const WORDS: &'static [&'static str] = &[$($text),*];

            /// The word itself.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$Word => $text,)* }
            }

            /// The value for `word`.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($text => Some(Self::$Word),)* _ => None }
            }
        }

        impl $crate::table::filters::FilterValue for $Name {
            type Asked = Self;

            fn text(&self) -> Option<String> {
                Some(self.as_str().to_owned())
            }
        }

        impl $crate::input::Parse for $Name {
            fn parse(raw: $crate::input::Raw<'_>, at: &$crate::input::Location, issues: &mut $crate::input::Issues) -> Option<Self> {
                $crate::input::one_of(raw, at, issues, Self::WORDS, Self::from_word)
            }
        }

        impl $crate::input::schema::Schema for $Name {
            fn schema() -> ::serde_json::Value {
                let schema = ::serde_json::json!({"type": "string", "enum": Self::WORDS});
                $crate::input::schema::titled(schema, stringify!($Name), concat!($($doc),*))
            }
        }
    };
}
