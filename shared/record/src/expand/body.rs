//! The bodies of create and update.

use proc_macro2::TokenStream;

use super::{code, code_of};
use crate::parse::{Declaration, Field};
use crate::words::{Mark, RoleWord};

/// `impl MadeOfBody`: the body of a create. It is left out where a body cannot make the record, since a field without a default is set by code.
pub fn made_of_body(declaration: &Declaration) -> Option<TokenStream> {
    let is_made = |field: &Field| field.default.is_some() || ![RoleWord::Own, RoleWord::Hidden].contains(&field.role);
    // Where a caller sends a field, a missing default is a mistake, which is reported already.
    if !declaration.is_sent() && !declaration.fields.iter().all(is_made) {
        return None;
    }
    let name = &declaration.name;
    let fields: Vec<_> = declaration.kept().map(|field| &field.name).collect();
    let values = declaration.kept().map(|field| {
        let (name, ty, value) = (&field.name, &field.ty, read(field));
        code_of! { field => let #name: Option<#ty> = #value; }
    });
    Some(code! {
        impl crate::table::declaration::MadeOfBody for #name {
            fn read(
                source: &crate::input::Source<'_>,
                issues: &mut crate::input::Issues,
                named: &mut crate::table::declaration::Named,
            ) -> Option<Self> {
                let _ = (source, &issues, &named);
                #(#values)*
                Some(Self { id: ::uuid::Uuid::nil().into(), #(#fields: #fields?,)* version: Default::default() })
            }
        }
    })
}

/// Reads `field` from the body of a create: none after an issue.
fn read(field: &Field) -> TokenStream {
    let json = field.json();
    match (field.role, &field.default) {
        (RoleWord::Input | RoleWord::Fixed, None) => code_of! { field => source.required(#json, issues) },
        (RoleWord::Input | RoleWord::Fixed, Some(default)) => {
            code_of! { field => source.optional(#json, issues, || #default) }
        }
        (RoleWord::Org, _) => code_of! { field => named.read_org(#json, source, issues) },
        (RoleWord::Parent, _) => code_of! { field => named.read_parent(#json, source, issues) },
        (_, Some(default)) => code! { Some(#default) },
        (RoleWord::Created | RoleWord::Updated, None) => {
            code_of! { field => Some(crate::values::time::Timestamp::from_unix_millis(0)) }
        }
        // Such a field is a mistake, which is reported already.
        (RoleWord::Later | RoleWord::Own | RoleWord::Hidden | RoleWord::Derived, None) => code! { None },
    }
}

/// The struct of the fields that an update can change.
pub fn changes(declaration: &Declaration) -> TokenStream {
    let fields = changed(declaration).map(|Field { name, ty, .. }| code! { pub #name: crate::input::Patch<#ty> });
    code! {
        /// The fields that an update can change.
        #[derive(Debug, Clone)]
        pub struct Fields {
            #(#fields,)*
        }
    }
}

/// The fields that an update can change.
fn changed(declaration: &Declaration) -> impl Iterator<Item = &Field> {
    declaration.fields.iter().filter(|field| field.role.is_changed())
}

/// The methods of `Declared` that are about bodies.
pub fn methods(declaration: &Declaration) -> TokenStream {
    let (begun, touched, changes) = (begun(declaration), touched(declaration), read_changes(declaration));
    let (applied, addresses) = (applied(declaration), addresses(declaration));
    let masks = sends_masks(declaration);
    code! { #begun #touched #changes #applied #masks #addresses }
}

/// The fields that a new record does not get from its body.
fn begun(declaration: &Declaration) -> TokenStream {
    let begun = declaration.fields.iter().filter_map(|field| {
        let name = &field.name;
        match field.role {
            RoleWord::Org => Some(code_of! { field => #name: org }),
            RoleWord::Parent => Some(code_of! { field => #name: parent.into() }),
            RoleWord::Created | RoleWord::Updated => Some(code_of! { field => #name: now }),
            _ => None,
        }
    });
    code! {
        fn begun(
            self,
            id: ::uuid::Uuid,
            org: crate::values::id::OrgId,
            parent: ::uuid::Uuid,
            now: crate::values::time::Timestamp,
        ) -> Self {
            let _ = (org, parent, now);
            Self { id: id.into(), #(#begun,)* ..self }
        }
    }
}

/// Notes that the record has changed.
fn touched(declaration: &Declaration) -> Option<TokenStream> {
    let Field { name, .. } = declaration.fields.iter().find(|field| field.role == RoleWord::Updated)?;
    Some(code! {
        fn touch(&mut self, now: crate::values::time::Timestamp) {
            self.#name = now;
        }
    })
}

/// The body of an update.
fn read_changes(declaration: &Declaration) -> TokenStream {
    let fields: Vec<_> = changed(declaration).map(|field| &field.name).collect();
    let values = changed(declaration).map(|field| {
        let (name, ty, json, is_optional) = (&field.name, &field.ty, field.json(), field.default.is_some());
        code_of! { field => let #name = source.change::<#ty>(#json, issues, #is_optional); }
    });
    code! {
        fn read_changes(source: &crate::input::Source<'_>, issues: &mut crate::input::Issues) -> Option<Fields> {
            let _ = (source, &issues);
            #(#values)*
            Some(Fields { #(#fields: #fields?,)* })
        }
    }
}

/// Makes the changes of an update.
fn applied(declaration: &Declaration) -> TokenStream {
    let applied = changed(declaration).map(|field| {
        let name = &field.name;
        let value = match field.mark() {
            Some(Mark::Masks) => code_of! { field => value.unmasked(&self.#name) },
            Some(Mark::Address) => code_of! { field => crate::table::declaration::sent_address(value, &self.#name) },
            _ => code_of! { field => value.clone() },
        };
        if let Some(default) = &field.default {
            code_of! { field =>
                match &changes.#name {
                    crate::input::Patch::Absent => {}
                    crate::input::Patch::Null => self.#name = #default,
                    crate::input::Patch::Set(value) => self.#name = #value,
                }
            }
        } else {
            code_of! { field =>
                if let crate::input::Patch::Set(value) = &changes.#name {
                    self.#name = #value;
                }
            }
        }
    });
    code! {
        fn apply(&mut self, changes: &Fields) {
            let _ = changes;
            #(#applied)*
        }
    }
}

/// Whether an update has masked texts, which stand for secrets of the record.
fn sends_masks(declaration: &Declaration) -> Option<TokenStream> {
    let masked = changed(declaration).filter(|field| field.is_masked());
    let fields: Vec<TokenStream> = masked
        .map(|field| {
            let name = &field.name;
            code_of! { field =>
                matches!(&changes.#name, crate::input::Patch::Set(value) if value.has_masks())
            }
        })
        .collect();
    (!fields.is_empty()).then(|| {
        code! {
            fn sends_masks(changes: &Fields) -> bool {
                [#(#fields),*].contains(&true)
            }
        }
    })
}

/// The addresses of endpoints, in the record and in an update.
fn addresses(declaration: &Declaration) -> Option<TokenStream> {
    let addresses = |of: &TokenStream| -> Vec<TokenStream> {
        let marked = declaration.fields.iter().filter(|field| field.mark() == Some(&Mark::Address));
        let address = |field: &Field| {
            let (name, json) = (&field.name, field.json());
            code_of! { field => crate::table::declaration::named_address(#json, &#of.#name) }
        };
        marked.map(address).collect()
    };
    let (own, changed) = (addresses(&code! { self }), addresses(&code! { changes }));
    let marked = declaration.fields.iter().filter(|field| field.mark() == Some(&Mark::Address));
    let shortened = marked.map(|field| {
        let name = &field.name;
        code_of! { field => #name: crate::table::declaration::HoldsAddress::without_query(&self.#name) }
    });
    (!own.is_empty()).then(|| {
        code! {
            fn addresses(&self) -> Vec<(&'static str, &str)> {
                [#(#own),*].into_iter().flatten().collect()
            }

            fn changed_addresses(changes: &Fields) -> Vec<(&'static str, &str)> {
                [#(#changed),*].into_iter().flatten().collect()
            }

            fn for_reader(self) -> Self {
                Self { #(#shortened,)* ..self }
            }
        }
    })
}
