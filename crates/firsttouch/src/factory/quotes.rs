//! Texts without their quotes, as in `pages(huge=thp)`: the shell removes them where the expression itself is not quoted.

use super::parameter::Kind;
use super::{Error, find};
use crate::allocator::Description;
use crate::description::Value;

/// Rejects a bare word in the place of a text, if no allocator has its name.
///
/// # Errors
/// How to write the text.
pub fn check_quotes(description: &Description, others: &[&str]) -> Result<(), Error> {
    let Some(factory) = find(&description.name) else { return Ok(()) };
    for (at, argument) in description.arguments.iter().flatten().enumerate() {
        let Value::Allocator(inner) = &argument.value else { continue };
        let (word, name) = (&*inner.name, argument.name.as_deref());
        let is_parameter = |(place, parameter): &(usize, &super::Parameter)| match name {
            Some(name) => parameter.name == name,
            None => *place == at,
        };
        let parameter = factory.parameters.iter().enumerate().find(is_parameter);
        let takes_text = parameter.is_some_and(|(_, parameter)| {
            matches!(parameter.kind, Kind::Word(_) | Kind::PageSizes | Kind::Policy | Kind::Size | Kind::Budget)
        });
        if takes_text
            && inner.arguments.iter().flatten().next().is_none()
            && find(word).is_none()
            && !others.contains(&word)
        {
            let name = name.map(|name| format!("{name}=")).unwrap_or_default();
            return Err(Error::Value(format!(
                "{word} is not in quotes: write {name}\"{word}\", and the whole expression in '...' in a shell"
            )));
        }
        check_quotes(inner, others)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::factory::{allocator_from_expression, check_expression};

    #[test]
    fn texts_without_their_quotes() {
        for (text, said) in [
            ("pages(huge=thp)", "thp is not in quotes: write huge=\"thp\", and"),
            ("pool(pages(thp))", "thp is not in quotes: write \"thp\", and"),
            ("guarded(side=before)", "before is not in quotes: write side=\"before\", and"),
            ("pages(numa=local)", "local is not in quotes: write numa=\"local\", and"),
            ("pool(thp)", "no allocator 'thp'"),
        ] {
            let made = allocator_from_expression(text).err().map(|error| error.to_string()).unwrap_or_default();
            let checked = check_expression(text, &[], &mut |_| ()).unwrap_err().to_string();
            for message in [made, checked] {
                assert!(message.starts_with(said), "{text}: {message}");
            }
        }
    }
}
