//! How the records of a list are found: filters, dates, unique values.

use proc_macro2::TokenStream;

use super::{code, code_of};
use crate::parse::{Declaration, Field};
use crate::words::Mark;

/// The methods of `Declared` that are about queries. The trait has those of a record without filters.
pub fn methods(declaration: &Declaration) -> TokenStream {
    let (terms, dated, unique) = (terms(declaration), dated(declaration), unique(declaration));
    let (unique_filters, members) = (unique_filters(declaration), members(declaration));
    code! { #terms #dated #unique #unique_filters #members }
}

/// The fields with a mark that `is` one of these.
fn marked(declaration: &Declaration, is: impl Fn(&Mark) -> bool) -> Vec<&Field> {
    declaration.fields.iter().filter(|field| field.mark().is_some_and(&is)).collect()
}

/// The filters that a record matches, and those of a query.
fn terms(declaration: &Declaration) -> TokenStream {
    let fields = marked(declaration, Mark::is_filter);
    let terms = fields.iter().map(|field| {
        let (ty, name, json) = (&field.ty, &field.name, field.json());
        let term = code_of! { field => crate::table::filters::Term::of::<#ty>(#json, &self.#name) };
        if is_sparse(field) {
            code! { #term.map(crate::table::filters::Term::sparse) }
        } else {
            term
        }
    });
    let asked = fields.iter().map(|field| {
        let terms = asked(field);
        if is_sparse(field) {
            code! { crate::table::declaration::sparse(#terms) }
        } else {
            terms
        }
    });
    let further = declaration.place.terms.iter();
    let terms = (!fields.is_empty() || declaration.place.terms.is_some()).then(|| {
        code! {
            fn terms(&self) -> Vec<crate::table::filters::Term> {
                let mut terms = Vec::new();
                #(terms.extend(#terms);)*
                #(terms.extend(#further(self));)*
                terms
            }
        }
    });
    let read = (!fields.is_empty()).then(|| {
        code! {
            fn read_terms(
                source: &crate::input::Source<'_>,
                issues: &mut crate::input::Issues,
            ) -> Option<Vec<crate::table::filters::Term>> {
                crate::table::declaration::all_terms([#(#asked),*])
            }
        }
    });
    code! { #terms #read }
}

/// Whether few rows have the same value.
fn is_sparse(field: &Field) -> bool {
    field.mark() == Some(&Mark::SparseFilter)
}

/// The terms that a query asks for by `field`.
fn asked(field: &Field) -> TokenStream {
    let (ty, json) = (&field.ty, field.json());
    code_of! { field => crate::table::filters::Term::read::<#ty>(#json, source, issues) }
}

/// When a record was made.
fn dated(declaration: &Declaration) -> Option<TokenStream> {
    let fields = marked(declaration, |mark| *mark == Mark::Dates);
    let field = fields.first()?;
    let name = &field.name;
    Some(code_of! { field =>
        const DATED: bool = true;

        fn dated(&self) -> Option<crate::values::time::Timestamp> {
            Some(self.#name)
        }
    })
}

/// The values that no other record of the list may have.
fn unique(declaration: &Declaration) -> Option<TokenStream> {
    let fields = marked(declaration, Mark::is_unique);
    let values = fields.iter().map(|field| {
        let (ty, name, json) = (&field.ty, &field.name, field.json());
        code_of! { field => crate::table::unique::UniqueValue::of::<#ty>(#json, &self.#name) }
    });
    (!fields.is_empty()).then(|| {
        code! {
            fn unique(&self) -> Vec<crate::table::unique::UniqueValue> {
                [#(#values),*].into_iter().flatten().collect()
            }
        }
    })
}

/// The unique values that a list can be asked for.
fn unique_filters(declaration: &Declaration) -> Option<TokenStream> {
    let fields = marked(declaration, |mark| *mark == Mark::UniqueFilter);
    let asked = fields.iter().map(|field| asked(field));
    (!fields.is_empty()).then(|| {
        code! {
            fn read_unique(
                source: &crate::input::Source<'_>,
                issues: &mut crate::input::Issues,
            ) -> Option<Vec<crate::table::filters::Term>> {
                crate::table::declaration::all_terms([#(#asked),*])
            }
        }
    })
}

/// The filters among the members of a query.
fn members(declaration: &Declaration) -> Option<TokenStream> {
    let fields = marked(declaration, |mark| mark.is_filter() || *mark == Mark::UniqueFilter);
    let members = fields.iter().map(|field| {
        let (ty, json) = (&field.ty, field.json());
        let doc = format!("Only records with this `{json}`.");
        code_of! { field => crate::table::filters::Term::member::<#ty>(#json, #doc) }
    });
    (!fields.is_empty()).then(|| {
        code! {
            fn filter_members() -> Vec<crate::input::schema::Member> {
                vec![#(#members),*]
            }
        }
    })
}
