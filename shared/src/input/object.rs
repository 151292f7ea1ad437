//! `object!` declares a JSON object that is no record.

/// Declares a JSON object that is part of an answer or is stored, but is no record: a struct with its JSON and its
/// schema.
#[macro_export]
macro_rules! object {
    (
        $(#[doc = $doc:literal])*
        $(#[derive($($Trait:ident),*)])?
        pub struct $Name:ident {
            $($(#[doc = $field_doc:literal])* $(#[serde($absent:ident)])? pub $field:ident: $Type:ty,)*
        }
        $(hidden { $($(#[doc = $hidden_doc:literal])* pub $hidden:ident: $HiddenType:ty,)* })?
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        $(#[derive($($Trait),*)])?
        pub struct $Name {
            $($(#[doc = $field_doc])* $(#[serde($absent)])? pub $field: $Type,)*
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
    // A type that is only sent borrows its values.
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
