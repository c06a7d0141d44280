//! Templates of keys: `"{department}_{year:04}"`.
//!
//! Promises: a template that could be taken apart in two ways is refused here, or, where that depends on a field's
//! value, when the key is written.

use syn::{Ident, LitStr};

pub struct Template {
    pub text: LitStr,
    /// Before the first field; the whole key if there is no field.
    pub prefix: String,
    pub fields: Vec<TemplateField>,
}

pub struct TemplateField {
    pub ident: Ident,
    /// What follows the colon: `04` in `{year:04}`.
    pub format: String,
    /// The text up to the next field, or to the end of the key.
    pub separator: String,
}

impl Template {
    pub fn parse(literal: LitStr) -> syn::Result<Template> {
        let error = |message: String| Err(syn::Error::new(literal.span(), message));
        let text = literal.value();
        let mut template = Template { text: literal.clone(), prefix: String::new(), fields: Vec::new() };
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '{' if characters.next_if_eq(&'{').is_some() => template.push('{'),
                '}' if characters.next_if_eq(&'}').is_some() => template.push('}'),
                '}' => {
                    return error(
                        "`}` without `{` in the key; write `}}` for the character itself".to_owned(),
                    );
                }
                '{' => {
                    let mut inside = String::new();
                    loop {
                        match characters.next() {
                            Some('}') => break,
                            Some(character) => inside.push(character),
                            None => {
                                return error(
                                    "`{` without `}` in the key; write `{{` for the character itself"
                                        .to_owned(),
                                );
                            }
                        }
                    }
                    let (name, format) = inside.split_once(':').unwrap_or((&inside, ""));
                    if let Some(TemplateField { ident: before, separator, .. }) = template.fields.last()
                        && separator.is_empty()
                    {
                        return error(format!(
                            "the key cannot be taken apart again: write some text between `{{{before}}}` and \
                             `{{{name}}}`, for example `_`"
                        ));
                    }
                    let Ok(mut ident) = syn::parse_str::<Ident>(name) else {
                        return error(format!("`{{{inside}}}` does not name a field"));
                    };
                    ident.set_span(literal.span());
                    template.fields.push(TemplateField {
                        ident,
                        format: format.to_owned(),
                        separator: String::new(),
                    });
                }
                '/' | '\\' | '#' | '?' => return error(format!("a key cannot contain `{character}`")),
                character if character.is_control() => {
                    return error("a key cannot contain control characters".to_owned());
                }
                character => template.push(character),
            }
        }
        Ok(template)
    }

    fn push(&mut self, character: char) {
        match self.fields.last_mut() {
            Some(field) => field.separator.push(character),
            None => self.prefix.push(character),
        }
    }
}
