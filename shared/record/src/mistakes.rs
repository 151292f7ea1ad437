//! The mistakes in a declaration, collected.

use proc_macro2::TokenStream;
use quote::ToTokens;

/// One mistake.
pub struct Mistake {
    /// The token that is wrong; empty where the parser of Rust has found it.
    #[cfg(test)]
    pub token: String,
    /// The message, at that token.
    pub error: syn::Error,
}

/// All mistakes in a declaration.
#[derive(Default)]
pub struct Mistakes(pub Vec<Mistake>);

impl Mistakes {
    /// Adds one at `token`. The message says what is allowed.
    pub fn add(&mut self, token: impl ToTokens, message: impl std::fmt::Display) {
        self.0.push(Mistake {
            #[cfg(test)]
            token: token.to_token_stream().to_string(),
            error: syn::Error::new_spanned(token, message),
        });
    }

    /// Adds one that the parser of Rust has found.
    pub fn syntax(&mut self, error: syn::Error) {
        self.0.push(Mistake {
            #[cfg(test)]
            token: String::new(),
            error,
        });
    }

    /// All of them as errors of the compiler.
    pub fn into_errors(self) -> TokenStream {
        let errors = self.0.into_iter().map(|mistake| mistake.error).reduce(|mut all, error| {
            all.combine(error);
            all
        });
        errors.map(|error| error.to_compile_error()).unwrap_or_default()
    }
}
