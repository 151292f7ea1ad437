//! The code of a record. Code that does not depend on the types of its fields is in `shared::table::declaration`, as ordinary functions.

mod body;
mod place;
mod query;
mod value;

use proc_macro2::TokenStream;

use crate::parse::Declaration;

/// `quote!`, with variables of its own: a field may have the name of one.
macro_rules! code {
    ($($tokens:tt)*) => {
        ::quote::quote_spanned! { ::proc_macro2::Span::mixed_site()=> $($tokens)* }
    };
}

/// The same for a field: where its type does not fit, the error is at the type.
macro_rules! code_of {
    ($field:expr => $($tokens:tt)*) => {{
        let place = ::syn::spanned::Spanned::span(&$field.ty);
        let span = ::proc_macro2::Span::mixed_site().located_at(place);
        ::quote::quote_spanned! { span=> $($tokens)* }
    }};
}

use {code, code_of};

/// The code of the declared record.
pub fn record(declaration: &Declaration) -> TokenStream {
    let (structure, json, schema) =
        (value::structure(declaration), value::json(declaration), value::schema(declaration));
    let (stored, body) = (value::stored(declaration), body::made_of_body(declaration));
    let (changes, declared, place) = (body::changes(declaration), declared(declaration), place::place(declaration));
    code! {
        #structure
        #json
        #schema
        const _: () = {
            #stored
            #changes
            #declared
            #body
        };
        #place
    }
}

/// `impl Declared`, and `impl Versioned`.
fn declared(declaration: &Declaration) -> TokenStream {
    let name = &declaration.name;
    let title = name.to_string();
    let values = value::methods(declaration);
    let bodies = body::methods(declaration);
    let queries = query::methods(declaration);
    let shown = declaration.place.shown.as_ref().map(|shown| {
        code! {
            fn shown(self) -> Self {
                #shown(self)
            }
        }
    });
    code! {
        impl crate::table::version::Versioned for #name {
            fn version(&self) -> crate::table::version::Version {
                self.version
            }

            fn set_version(&mut self, version: crate::table::version::Version) {
                self.version = version;
            }
        }

        impl crate::table::declaration::Declared for #name {
            const NAME: &'static str = #title;
            type Changes = Fields;

            fn uuid(&self) -> ::uuid::Uuid {
                self.id.into()
            }

            #values
            #bodies
            #queries
            #shown
        }
    }
}
