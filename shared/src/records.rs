//! The records: their fields, and how their state may change. Their code is pure: no input, no output, no clock.
//!
//! [`record!`](crate::record) declares a record once ([`declaration`] says how). [`object!`](crate::object) declares other JSON objects, and
//! [`choice!`](crate::choice) a fixed list of words.

pub mod agency;
pub mod assistant;
pub mod campaign;
pub mod contact;
pub mod contact_point;
pub mod conversation;
pub mod datasource;
pub mod delivery;
pub mod form;
pub mod intent;
pub mod tag;
pub mod user;
pub mod webhook;
pub mod widget;

/// Declares a JSON object that is answered or stored and is not a record: a struct with its JSON and its schema.
#[macro_export]
macro_rules! object {
    (
        $(#[doc = $doc:literal])*
        $(#[derive($($Trait:ident),*)])?
        pub struct $Name:ident {
            $($(#[doc = $field_doc:literal])* pub $field:ident: $Type:ty,)*
        }
        $(hidden { $($(#[doc = $hidden_doc:literal])* pub $hidden:ident: $HiddenType:ty,)* })?
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        $(#[derive($($Trait),*)])?
        pub struct $Name {
            $($(#[doc = $field_doc])* pub $field: $Type,)*
            $($($(#[doc = $hidden_doc])* #[serde(default, skip_serializing)] pub $hidden: $HiddenType,)*)?
        }

        impl $crate::input::schema::Schema for $Name {
            fn schema() -> ::serde_json::Value {
                let members = vec![
                    $($crate::input::member::<$Type>(stringify!($field), true, concat!($($field_doc),*)),)*
                ];
                $crate::input::schema::titled($crate::input::schema::object(members), stringify!($Name), concat!($($doc),*))
            }
        }
    };
    // What is only sent borrows.
    (
        $(#[doc = $doc:literal])*
        pub struct $Name:ident<$life:lifetime> {
            $($(#[doc = $field_doc:literal])* pub $field:ident: $Type:ty,)*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, ::serde::Serialize)]
        pub struct $Name<$life> {
            $($(#[doc = $field_doc])* pub $field: $Type,)*
        }

        impl<$life> $crate::input::schema::Schema for $Name<$life> {
            fn schema() -> ::serde_json::Value {
                let members = vec![
                    $($crate::input::member::<$Type>(stringify!($field), true, concat!($($field_doc),*)),)*
                ];
                $crate::input::schema::titled($crate::input::schema::object(members), stringify!($Name), concat!($($doc),*))
            }
        }
    };
}

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

            /// The value that `word` stands for.
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
