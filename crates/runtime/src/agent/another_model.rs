//! Another model than the file's, as one word on the command line: `anthropic:claude-sonnet-4-5`,
//! `openai:qwen3:8b@http://localhost:11434/v1`, `offline`.

use lodestep_core::Error;
use lodestep_core::definition::{Definition, ModelSpec};
use lodestep_providers::Dialect;

use super::names::instead;
use crate::model::service::{dialect, sound_url};

/// What the word looks like.
const FORMS: &str =
    "write anthropic:NAME, openai:NAME, openai:NAME@http://localhost:11434/v1 for a compatible server, or offline";

/// Puts another model in the place of a definition's. Of the file's stay the window, the limits of a reply, and how often is
/// tried; parameters, times and prices were the other model's. The key is the service's usual variable, and none for a
/// compatible server.
///
/// # Errors
///
/// `usage.model`, with how it is written; `agent.price_missing` for a quota of usd: the price is not known.
pub(super) fn put(definition: &mut Definition, word: &str) -> Result<(), Error> {
    let model = read(word, &definition.model)?;
    if definition.quota.usd_micro.is_some() && model.provider != "offline" {
        let what = "the agent has a quota of usd, and --model says no price".to_owned();
        return Err(Error::new(
            "agent.price_missing",
            what,
            "write the model with its `price` into [model] of the file",
        ));
    }
    definition.model = model;
    definition.memo = Default::default();
    Ok(())
}

fn read(word: &str, of_file: &ModelSpec) -> Result<ModelSpec, Error> {
    let wrong =
        |what: String, next: &str| Error::new("usage.model", format!("--model {word}: {what}"), next.to_owned());
    let limits = ModelSpec {
        max_output_tokens: of_file.max_output_tokens,
        max_output_tokens_retry: of_file.max_output_tokens_retry,
        context_window: of_file.context_window,
        max_faulty_replies: of_file.max_faulty_replies,
        max_attempts: of_file.max_attempts,
        ..ModelSpec::default()
    };
    let (provider, rest) = word.split_once(':').unwrap_or((word, ""));
    if provider == "offline" && rest.is_empty() {
        return Ok(limits);
    }
    let Some(dialect) = dialect(provider) else {
        let next = match instead(provider, &[Dialect::Anthropic.name(), Dialect::OpenAi.name(), "offline"], "providers")
        {
            near if near.starts_with("did") => near,
            _ => FORMS.to_owned(),
        };
        return Err(wrong(format!("there is no provider `{provider}`"), &next));
    };
    // Names have colons, and some an @ of their own.
    let (name, base_url) = match rest.find("@http://").or_else(|| rest.find("@https://")) {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    if let Some((_, place)) = name.rsplit_once('@').filter(|(_, place)| place.contains(['/', ':', '.'])) {
        return Err(wrong(format!("`{place}` is no url"), "write http:// or https:// before it"));
    }
    if name.trim().is_empty() || name.contains("${") {
        return Err(wrong("it names no model".to_owned(), FORMS));
    }
    let base_url = base_url.map(|url| sound_url(dialect, url, false)).transpose();
    let base_url = base_url.map_err(|(what, next)| wrong(what, next))?;
    let api_key = base_url.is_none().then(|| format!("${{env:{}}}", dialect.key_variable()));
    Ok(ModelSpec { provider: provider.to_owned(), name: name.to_owned(), base_url, api_key, ..limits })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(word: &str) -> Result<ModelSpec, Error> {
        read(
            word,
            &ModelSpec {
                context_window: 9_000,
                max_output_tokens_retry: Some(5_000),
                max_attempts: 7,
                ..ModelSpec::default()
            },
        )
    }

    #[test]
    fn one_word_names_provider_model_and_place() {
        let spec = of("anthropic:claude-sonnet-4-5").unwrap();
        assert_eq!((spec.provider.as_str(), spec.name.as_str()), ("anthropic", "claude-sonnet-4-5"));
        assert_eq!((spec.api_key.as_deref(), spec.base_url), (Some("${env:ANTHROPIC_API_KEY}"), None));
        assert_eq!((spec.context_window, spec.max_attempts), (9_000, 7), "the file's");
        assert_eq!(spec.max_output_tokens_retry, Some(5_000), "the file's");
        let spec = of("openai:qwen3:8b@http://localhost:11434/v1/").unwrap();
        assert_eq!((spec.name.as_str(), spec.base_url.as_deref()), ("qwen3:8b", Some("http://localhost:11434/v1")));
        assert_eq!(spec.api_key, None, "a key of OpenAI's is not sent elsewhere");
        assert_eq!(of("openai:m@2").unwrap().name, "m@2");
        assert_eq!(of("offline").unwrap().provider, "offline");
    }

    #[test]
    fn what_is_no_model_says_how_it_is_written() {
        for (word, what, next) in [
            ("antropic:m", "there is no provider `antropic`", "did you mean `anthropic`?"),
            ("gpt-5", "there is no provider `gpt-5`", FORMS),
            ("openai", "it names no model", FORMS),
            ("openai:@http://localhost:1/v1", "it names no model", FORMS),
            ("openai:m@http://localhost:1/v1/chat/completions", "it ends with /chat/completions", "take that out"),
            ("openai:m@127.0.0.1:8201/v1", "`127.0.0.1:8201/v1` is no url", "write http:// or https:// before it"),
            ("openai:m@gateway.example", "`gateway.example` is no url", "write http:// or https:// before it"),
            ("offline:x", "there is no provider `offline`", "did you mean `offline`?"),
        ] {
            let error = of(word).expect_err(word);
            assert!(error.to_string().contains(what), "{error}");
            assert_eq!(error.next(), next, "{word}");
        }
    }
}
