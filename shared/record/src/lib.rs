//! The macro `record!`, which declares a record. `shared::table::declaration` describes its roles, its marks and its places.
//!
//! [`parse`] reads a declaration, [`check`] looks for mistakes, and [`expand`] writes the code of the record. Each mistake is an error of the
//! compiler at its token, and all of them are reported at once.

#![warn(missing_docs)]

mod check;
mod expand;
mod mistakes;
mod parse;
mod place;
mod words;

use proc_macro2::TokenStream;
use syn::parse::{ParseStream, Parser as _};

use crate::mistakes::Mistakes;
use crate::parse::Declaration;

/// Declares a record: see `shared::table::declaration`.
#[proc_macro]
pub fn record(declaration: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let (code, mistakes) = expanded(declaration.into());
    let errors = mistakes.into_errors();
    quote::quote! { #errors #code }.into()
}

/// The code of the declared record, and the mistakes in its declaration. What is right is expanded also beside a mistake: otherwise each use of
/// the record would be one more error.
fn expanded(declaration: TokenStream) -> (TokenStream, Mistakes) {
    let mut mistakes = Mistakes::default();
    let parsed = (|input: ParseStream<'_>| Declaration::parse(input, &mut mistakes)).parse2(declaration);
    let code = match parsed {
        Ok(mut declaration) => {
            check::check(&mut declaration, &mut mistakes);
            expand::record(&declaration)
        }
        Err(error) => {
            mistakes.syntax(error);
            TokenStream::new()
        }
    };
    (code, mistakes)
}
