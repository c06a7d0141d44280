//! Names of properties: how they follow from the names of fields, and which the service accepts.

use proc_macro2::Span;
use syn::LitStr;

/// How names are written when they are not given one by one.
#[derive(Clone, Copy)]
pub enum Style {
    Exact,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Lower,
    Upper,
}

const STYLES: [(&str, Style); 6] = [
    ("PascalCase", Style::Pascal),
    ("camelCase", Style::Camel),
    ("snake_case", Style::Snake),
    ("SCREAMING_SNAKE_CASE", Style::ScreamingSnake),
    ("lowercase", Style::Lower),
    ("UPPERCASE", Style::Upper),
];

impl Style {
    pub fn parse(text: &LitStr) -> syn::Result<Style> {
        let wanted = text.value();
        match STYLES.iter().find(|(name, _)| *name == wanted) {
            Some((_, style)) => Ok(*style),
            None => {
                let known: Vec<String> = STYLES.iter().map(|(name, _)| format!("\"{name}\"")).collect();
                Err(syn::Error::new(
                    text.span(),
                    format!("unknown style of names; expected one of {}", known.join(", ")),
                ))
            }
        }
    }

    /// The name in this style. Fields are written `like_this`, variants `LikeThis`; both are understood.
    pub fn apply(self, name: &str) -> String {
        let words = words(name);
        let capital = |word: &String| {
            let mut characters = word.chars();
            characters
                .next()
                .map(|first| first.to_uppercase().chain(characters).collect::<String>())
                .unwrap_or_default()
        };
        match self {
            Style::Exact => name.to_owned(),
            Style::Pascal => words.iter().map(capital).collect(),
            Style::Camel => words
                .iter()
                .enumerate()
                .map(|(at, word)| if at == 0 { word.clone() } else { capital(word) })
                .collect(),
            Style::Snake => words.join("_"),
            Style::ScreamingSnake => words.join("_").to_uppercase(),
            Style::Lower => words.concat(),
            Style::Upper => words.concat().to_uppercase(),
        }
    }
}

/// The words of a name, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for character in name.chars() {
        if character == '_' || (character.is_uppercase() && after_lower) {
            words.push(String::new());
        }
        if character != '_' {
            words.last_mut().expect("there is a first word").extend(character.to_lowercase());
        }
        after_lower = character.is_lowercase() || character.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The rules of the service, as far as they matter for names that people write.
pub fn check_property(name: &str, span: Span) -> syn::Result<()> {
    let hint = match name {
        "PartitionKey" => Some("mark the field with #[entity(partition_key)]"),
        "RowKey" => Some("mark the field with #[entity(row_key)]"),
        "Timestamp" => Some("the service sets it; mark the field with #[entity(timestamp)]"),
        _ => None,
    };
    if let Some(hint) = hint {
        return Err(syn::Error::new(span, format!("`{name}` cannot be a property of its own: {hint}")));
    }
    let first_fits = name.chars().next().is_some_and(|first| first == '_' || first.is_alphabetic());
    let all_fit = name.chars().all(|character| character == '_' || character.is_alphanumeric());
    if !first_fits || !all_fit {
        let rule = "a property's name has letters, digits and `_`, and does not begin with a digit";
        return Err(syn::Error::new(span, format!("`{name}` cannot be the name of a property: {rule}")));
    }
    if name.encode_utf16().count() > 255 {
        return Err(syn::Error::new(span, "a property's name has at most 255 characters"));
    }
    Ok(())
}

/// Words that a filter reads as something else than a property.
pub fn can_be_filtered(name: &str) -> bool {
    !["true", "false", "null", "not", "NaN", "INF"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_style() {
        let check = |style: &str, name: &str, expected: &str| {
            let style = Style::parse(&LitStr::new(style, Span::call_site())).unwrap();
            assert_eq!(style.apply(name), expected);
        };
        check("PascalCase", "first_name", "FirstName");
        check("PascalCase", "id2", "Id2");
        check("camelCase", "first_name", "firstName");
        check("camelCase", "OnLeave", "onLeave");
        check("snake_case", "OnLeave", "on_leave");
        check("SCREAMING_SNAKE_CASE", "first_name", "FIRST_NAME");
        check("lowercase", "OnLeave", "onleave");
        check("UPPERCASE", "first_name", "FIRSTNAME");
    }
}
