//! The place of a record in the table.

use proc_macro2::TokenStream;

use super::{code, code_of};
use crate::parse::Declaration;
use crate::place::{ListOwner, ListPlace};

/// The code that depends on the owner of a list. In it, `id` is the id of a row, `of` the owner, `fresh` a new id, `ordinal` that of the row.
struct Parts {
    /// The type of the key of a row.
    key: TokenStream,
    /// The id of the row.
    uuid: TokenStream,
    /// The list that the row stands in.
    list_of: TokenStream,
    /// The type of the owner.
    of: TokenStream,
    /// The list of the owner.
    list: TokenStream,
    /// The id of a new row.
    id_at: TokenStream,
    /// The record that a row belongs to.
    parent: Option<TokenStream>,
}

/// `impl Stored` and `impl Listed`.
pub fn place(declaration: &Declaration) -> TokenStream {
    let parts = Parts::of(declaration);
    let (stored, listed) = (stored(declaration, &parts), listed(declaration, &parts));
    code! { #stored #listed }
}

impl Parts {
    fn of(declaration: &Declaration) -> Self {
        let (own, list) = (&declaration.id, &declaration.place.list);
        match &declaration.place.owner {
            ListOwner::Organisation => Self {
                key: code! { #own },
                uuid: code! { id.0 },
                list_of: code! { #list.to_owned() },
                of: code! { () },
                list: code! { #list.to_owned() },
                id_at: code! { crate::values::id::with_ordinal(fresh, ordinal).into() },
                parent: None,
            },
            ListOwner::Of { id, parent } => Self {
                key: code! { (#id, #own) },
                uuid: code! { id.1.0 },
                list_of: code! { format!("{}#{}", #list, id.0) },
                of: code! { #id },
                list: code! { format!("{}#{of}", #list) },
                id_at: code! { (of, crate::values::id::with_ordinal(fresh, ordinal).into()) },
                parent: parent.as_ref().map(|parent| code! { #parent }),
            },
            ListOwner::Within { id, parent } => Self {
                key: code! { #own },
                uuid: code! { id.0 },
                list_of: code! { format!("{}#{:010}", #list, crate::values::id::parent_ordinal(id.0)) },
                of: code! { #id },
                list: code! { format!("{}#{:010}", #list, crate::values::id::ordinal(of.0)) },
                id_at: code! {
                    crate::values::id::with_ordinals(fresh, crate::values::id::ordinal(of.0), ordinal).into()
                },
                parent: Some(code! { #parent }),
            },
        }
    }
}

/// `impl Stored`.
fn stored(declaration: &Declaration, parts: &Parts) -> TokenStream {
    let Declaration { name, id, .. } = declaration;
    let title = name.to_string();
    let Parts { key, uuid, list_of, .. } = parts;
    let due = declaration.place.due.as_ref().map(|due| {
        code! {
            fn due_partition(&self, id: #key) -> Option<String> {
                #due(self, id)
            }
        }
    });
    let secrets = secrets(declaration);
    code! {
        impl crate::table::stored::Stored for #name {
            type Id = #key;
            const PARAMETER: &'static str = <#id as crate::values::id::Id>::PARAMETER;
            const RECORD: Option<&'static str> = Some(#title);

            fn key(tenant: &crate::values::tenant::Tenant, id: #key) -> crate::table::keys::Key {
                crate::table::keys::list_row(tenant, &#list_of, crate::values::id::ordinal(#uuid))
            }

            fn proof(id: #key) -> Option<::uuid::Uuid> {
                Some(#uuid)
            }

            fn hide(&self, item: &mut crate::table::item::Item) -> ::core::result::Result<(), crate::table::TableError> {
                crate::table::declaration::Declared::hide(self, item)
            }

            #due
            #secrets
        }
    }
}

/// The secrets of the record, each with its place: no two fields have the same one.
fn secrets(declaration: &Declaration) -> Option<TokenStream> {
    let fields: Vec<TokenStream> = declaration
        .fields
        .iter()
        .filter(|field| field.has_secrets())
        .map(|field| {
            let (name, place) = (&field.name, format!("{}.{}", declaration.name, field.json()));
            code_of! { field =>
                let mut found = Vec::new();
                crate::values::secret::HoldsSecrets::secrets(&mut self.#name, &mut found);
                all.extend(found.into_iter().map(|found| (#place, found)));
            }
        })
        .collect();
    (!fields.is_empty()).then(|| {
        code! {
            const HAS_SECRETS: bool = true;

            fn secrets(&mut self) -> Vec<(&'static str, crate::values::secret::FoundSecret<'_>)> {
                let mut all = Vec::new();
                #(#fields)*
                all
            }
        }
    })
}

/// `impl Listed`.
fn listed(declaration: &Declaration, parts: &Parts) -> TokenStream {
    let Declaration { name, place: ListPlace { spread, pointers, counted, .. }, .. } = declaration;
    let Parts { key, list_of, of, list, id_at, parent, .. } = parts;
    let parent = parent.as_ref().map(|parent| {
        code! {
            fn parent(tenant: &crate::values::tenant::Tenant, of: #of) -> Option<crate::table::declaration::Reference> {
                let parameter = <#of as crate::values::id::Id>::PARAMETER;
                crate::table::stored::reference::<#parent, _>(tenant, parameter, &of)
            }
        }
    });
    let pointers = pointers.as_ref().map(|pointers| {
        code! {
            fn pointers(&self, tenant: &crate::values::tenant::Tenant) -> Vec<crate::table::keys::Key> {
                #pointers(self, tenant)
            }
        }
    });
    let counted = counted.as_ref().map(|counted| {
        code! {
            fn uses(&self) -> crate::table::quota::Amounts {
                #counted(self)
            }
        }
    });
    code! {
        impl crate::table::stored::Listed for #name {
            type Of = #of;
            const SPREADS: bool = #spread;

            fn list(of: #of) -> String {
                let _ = of;
                #list
            }

            fn list_of(id: #key) -> String {
                let _ = id;
                #list_of
            }

            fn id_at(of: #of, fresh: ::uuid::Uuid, ordinal: u64) -> #key {
                let _ = of;
                #id_at
            }

            #parent
            #pointers
            #counted
        }
    }
}
