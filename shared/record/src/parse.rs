//! A declaration, as it is written.

use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Result};
use syn::{Attribute, Expr, ExprLit, Ident, Lit, Meta, Token, Type, braced, parenthesized, token};

use crate::mistakes::Mistakes;
use crate::place::ListPlace;
use crate::words::{Mark, RoleWord};

/// The declaration of a record.
pub struct Declaration {
    /// What it says of the record.
    pub docs: Docs,
    /// The name of the record.
    pub name: Ident,
    /// The type of its id.
    pub id: Ident,
    /// Its list.
    pub place: ListPlace,
    /// Its fields, in their order.
    pub fields: Vec<Field>,
}

/// A field of a record.
pub struct Field {
    /// What the declaration says of it.
    pub docs: Docs,
    /// Its role.
    pub role: RoleWord,
    /// The token of the role.
    pub role_at: Ident,
    /// Its mark, with the first token.
    pub mark: Option<(Mark, Ident)>,
    /// Its name.
    pub name: Ident,
    /// Its type.
    pub ty: Type,
    /// Its default.
    pub default: Option<Expr>,
    /// The record that it names.
    pub target: Option<Type>,
}

/// The documentation of a record or of a field.
pub struct Docs {
    /// Its lines, as attributes.
    pub lines: Vec<Attribute>,
    /// Its lines as one text.
    pub text: String,
}

impl Declaration {
    /// Reads one. Fields that cannot be read are left out.
    pub fn parse(input: ParseStream<'_>, mistakes: &mut Mistakes) -> Result<Self> {
        let docs = Docs::parse(input, mistakes)?;
        input.parse::<Token![pub]>()?;
        input.parse::<Token![struct]>()?;
        let name = input.parse()?;
        let content;
        parenthesized!(content in input);
        let id = content.parse()?;
        input.parse::<Token![:]>()?;
        let place = ListPlace::parse(input, mistakes);
        let content;
        braced!(content in input);
        let fields = fields(&content, mistakes);
        Ok(Self { docs, name, id, place: place?, fields })
    }

    /// The fields that its struct has: all but those that follow from others.
    pub fn kept(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|field| field.role != RoleWord::Derived)
    }

    /// Whether a caller may send one of its fields. No body makes or changes any other record.
    pub fn is_sent(&self) -> bool {
        self.fields.iter().any(|field| field.role.is_sent())
    }
}

/// Reads all fields that can be read.
fn fields(input: ParseStream<'_>, mistakes: &mut Mistakes) -> Vec<Field> {
    let mut fields = Vec::new();
    while !input.is_empty() {
        match Field::parse(input, mistakes) {
            Ok(field) => fields.extend(field),
            Err(error) => {
                mistakes.syntax(error);
                skip_field(input);
            }
        }
    }
    fields
}

/// Skips the rest of a field that cannot be read. The next one begins behind a comma, with its documentation: other commas stand within a type.
fn skip_field(input: ParseStream<'_>) {
    while let Ok(skipped) = input.parse::<TokenTree>() {
        let is_comma = matches!(skipped, TokenTree::Punct(punct) if punct.as_char() == ',');
        if is_comma && input.peek(Token![#]) {
            return;
        }
    }
}

impl Field {
    /// Reads one. `None` after a mistake in its role.
    fn parse(input: ParseStream<'_>, mistakes: &mut Mistakes) -> Result<Option<Self>> {
        let docs = Docs::parse(input, mistakes)?;
        let role = RoleWord::parse(input, mistakes)?;
        let mark = mark(input, mistakes)?;
        let name = input.parse()?;
        input.parse::<Token![:]>()?;
        let ty = input.parse()?;
        let default = if input.peek(Token![=]) && !input.peek(Token![=>]) {
            input.parse::<Token![=]>()?;
            Some(input.parse()?)
        } else {
            None
        };
        let target = if input.peek(Token![=>]) {
            input.parse::<Token![=>]>()?;
            Some(input.parse()?)
        } else {
            None
        };
        input.parse::<Token![,]>()?;
        Ok(role.map(|(role, role_at)| Self { docs, role, role_at, mark, name, ty, default, target }))
    }

    /// Its mark.
    pub fn mark(&self) -> Option<&Mark> {
        self.mark.as_ref().map(|(mark, _)| mark)
    }

    /// Whether answers have it with its secrets masked.
    pub fn is_masked(&self) -> bool {
        self.mark() == Some(&Mark::Masks)
    }

    /// Whether it has secrets, which are sealed in the table.
    pub fn has_secrets(&self) -> bool {
        matches!(self.mark(), Some(Mark::Masks | Mark::Sealed))
    }

    /// Its name in JSON, in the table and in a query.
    pub fn json(&self) -> String {
        self.name.unraw().to_string()
    }
}

/// Reads the mark in parentheses, if there is one.
fn mark(input: ParseStream<'_>, mistakes: &mut Mistakes) -> Result<Option<(Mark, Ident)>> {
    if !input.peek(token::Paren) {
        return Ok(None);
    }
    let content;
    parenthesized!(content in input);
    let mark = Mark::parse(&content, mistakes);
    // Unread tokens would be one more error.
    content.parse::<TokenStream>()?;
    mark
}

impl Docs {
    fn parse(input: ParseStream<'_>, mistakes: &mut Mistakes) -> Result<Self> {
        let mut docs = Self { lines: Vec::new(), text: String::new() };
        for attribute in input.call(Attribute::parse_outer)? {
            let Some(line) = line(&attribute) else {
                mistakes.add(attribute, "a declaration has documentation, and no other attribute");
                continue;
            };
            docs.text += &line;
            docs.lines.push(attribute);
        }
        Ok(docs)
    }
}

/// The text of a line of documentation.
fn line(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(doc) = &attribute.meta else { return None };
    match &doc.value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if doc.path.is_ident("doc") => Some(text.value()),
        _ => None,
    }
}
