//! The value: its struct, its JSON, its schema, its item in the table.

use proc_macro2::TokenStream;

use super::{code, code_of};
use crate::parse::{Declaration, Field};
use crate::words::{Mark, RoleWord};

/// The struct.
pub fn structure(declaration: &Declaration) -> TokenStream {
    let Declaration { name, id, .. } = declaration;
    let docs = &declaration.docs.lines;
    let fields = declaration.kept().map(|Field { docs, name, ty, .. }| {
        let docs = &docs.lines;
        code! { #(#docs)* pub #name: #ty }
    });
    code! {
        #(#docs)*
        #[derive(Debug, Clone, PartialEq)]
        pub struct #name {
            /// Identifier.
            pub id: #id,
            #(#fields,)*
            /// How often it has changed; never answered.
            pub version: crate::table::version::Version,
        }
    }
}

/// `impl Serialize`: what is answered.
pub fn json(declaration: &Declaration) -> TokenStream {
    let name = &declaration.name;
    let members = answered(declaration).map(|field| {
        let (name, json) = (&field.name, field.json());
        match (&field.default, field.role) {
            (Some(function), RoleWord::Derived) => {
                let ty = &field.ty;
                code_of! { field =>
                    let derived: #ty = #function(self);
                    members.serialize_entry(#json, &derived)?;
                }
            }
            _ if field.is_masked() => code_of! { field => members.serialize_entry(#json, &self.#name.masked())?; },
            _ => code_of! { field => members.serialize_entry(#json, &self.#name)?; },
        }
    });
    code! {
        impl ::serde::Serialize for #name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> ::core::result::Result<S::Ok, S::Error> {
                use ::serde::ser::SerializeMap as _;
                let mut members = serializer.serialize_map(None)?;
                members.serialize_entry("id", &self.id)?;
                #(#members)*
                members.end()
            }
        }
    }
}

/// The fields that are answered.
fn answered(declaration: &Declaration) -> impl Iterator<Item = &Field> {
    declaration.fields.iter().filter(|field| field.role != RoleWord::Hidden)
}

/// `impl Schema`.
pub fn schema(declaration: &Declaration) -> TokenStream {
    let Declaration { name, id, .. } = declaration;
    let doc = &declaration.docs.text;
    code! {
        impl crate::input::schema::Schema for #name {
            fn schema() -> ::serde_json::Value {
                crate::table::declaration::schema::<Self>(crate::input::member::<#id>("id", true, "Identifier."), #doc)
            }
        }
    }
}

/// `impl Deserialize`: the stored item.
pub fn stored(declaration: &Declaration) -> TokenStream {
    let Declaration { name, id, .. } = declaration;
    let attributes = declaration.kept().map(|field| {
        let Field { name, ty, .. } = field;
        code_of! { field => #[serde(default)] #name: crate::table::declaration::Attribute<#ty> }
    });
    let values = declaration.kept().map(|field| {
        let (name, json) = (&field.name, field.json());
        if let Some(default) = &field.default {
            code_of! { field => #name: stored.#name.0.unwrap_or_else(|| #default) }
        } else {
            code_of! { field =>
                #name: stored.#name.0.ok_or_else(|| <D::Error as ::serde::de::Error>::missing_field(#json))?
            }
        }
    });
    code! {
        #[derive(::serde::Deserialize)]
        struct Attributes {
            id: #id,
            #(#attributes,)*
            #[serde(default)]
            version: Option<u64>,
            #[serde(default)]
            changed_by: Option<::uuid::Uuid>,
            #[serde(default)]
            counted: bool,
        }

        impl<'de> ::serde::Deserialize<'de> for #name {
            fn deserialize<D: ::serde::Deserializer<'de>>(json: D) -> ::core::result::Result<Self, D::Error> {
                let stored = Attributes::deserialize(json)?;
                Ok(Self {
                    id: stored.id,
                    #(#values,)*
                    version: crate::table::version::Version::stored(stored.version, stored.changed_by, stored.counted),
                })
            }
        }
    }
}

/// The methods of `Declared` that are about the value alone.
pub fn methods(declaration: &Declaration) -> TokenStream {
    let (members, hidden) = (members(declaration), hidden(declaration));
    let references = references(declaration);
    code! { #members #hidden #references }
}

/// The members, with their roles.
fn members(declaration: &Declaration) -> TokenStream {
    let members = answered(declaration).map(|field| {
        let role = match field.role {
            RoleWord::Input => code! { Input },
            RoleWord::Fixed => code! { Fixed },
            RoleWord::Later => code! { Later },
            RoleWord::Org => code! { Org },
            RoleWord::Parent => code! { Parent },
            RoleWord::Own | RoleWord::Hidden | RoleWord::Derived | RoleWord::Created | RoleWord::Updated => {
                code! { Own }
            }
        };
        let member = member(field);
        code! { (crate::table::declaration::FieldRole::#role, #member) }
    });
    code! {
        fn members() -> Vec<(crate::table::declaration::FieldRole, crate::input::schema::Member)> {
            vec![#(#members),*]
        }
    }
}

/// The member of `field`.
fn member(field: &Field) -> TokenStream {
    let (ty, json, doc) = (&field.ty, field.json(), &field.docs.text);
    let default = field.default.as_ref().filter(|_| field.role != RoleWord::Derived);
    let member = if let Some(default) = default {
        code_of! { field => crate::input::member_or::<#ty>(#json, #doc, &(#default)) }
    } else {
        code_of! { field => crate::input::member::<#ty>(#json, true, #doc) }
    };
    if field.mark() == Some(&Mark::Address) {
        code! { crate::table::declaration::address(#member) }
    } else {
        member
    }
}

/// The attributes that are stored, and never answered. The item has the secrets themselves, in place of their masks, and
/// nothing that follows from other fields.
fn hidden(declaration: &Declaration) -> TokenStream {
    let is_hidden = |field: &&Field| field.role == RoleWord::Hidden || field.is_masked();
    let hidden = declaration.fields.iter().filter(is_hidden).map(|field| {
        let (name, json) = (&field.name, field.json());
        code_of! { field => crate::table::item::hide(item, #json, &self.#name)?; }
    });
    let derived = declaration.fields.iter().filter(|field| field.role == RoleWord::Derived);
    let derived = derived.map(Field::json);
    code! {
        fn hide(&self, item: &mut crate::table::item::Item) -> ::core::result::Result<(), crate::table::TableError> {
            #(#hidden)*
            #(item.remove(#derived);)*
            self.version.hide(item);
            Ok(())
        }
    }
}

/// The records that fields name.
fn references(declaration: &Declaration) -> Option<TokenStream> {
    let references: Vec<TokenStream> = declaration
        .fields
        .iter()
        .filter_map(|field| {
            let (name, json, target) = (&field.name, field.json(), field.target.as_ref()?);
            Some(code_of! { field => crate::table::stored::reference::<#target, _>(tenant, #json, &self.#name) })
        })
        .collect();
    (!references.is_empty()).then(|| {
        code! {
            fn references(&self, tenant: &crate::values::tenant::Tenant) -> Vec<crate::table::declaration::Reference> {
                [#(#references),*].into_iter().flatten().collect()
            }
        }
    })
}
