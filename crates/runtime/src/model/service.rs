//! Where a provider is asked, and with what: the definition's references filled in for this place.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lodestep_core::definition::ModelSpec;
use lodestep_core::json::canonical;
use lodestep_core::{Definition, Digest, Error, Result};
use lodestep_model::{Model, ModelError, ModelFuture, Progress, Request};
use lodestep_providers::{Dialect, OutputLimitField, Patience, Provider, Settings};

use serde_json::json;

use crate::secrets::Environment;
use crate::tools::http::Target;

/// The dialect that a provider of an agent file speaks.
pub(crate) fn dialect(provider: &str) -> Option<Dialect> {
    [Dialect::Anthropic, Dialect::OpenAi].into_iter().find(|dialect| dialect.name() == provider)
}

/// A definition's model, asked through a service. Name, place and key are those of the moment: what is changed is used with the
/// next call, and a run that stopped because one of them was wrong goes on when it is mended.
pub(super) struct Service {
    definition: Definition,
    dialect: Dialect,
    environment: Environment,
    /// As it was asked last: its connections are used again.
    last: Mutex<Option<Arc<Provider>>>,
}

impl Service {
    pub(super) fn of(definition: &Definition, dialect: Dialect, environment: &Environment) -> Self {
        Self { definition: definition.clone(), dialect, environment: environment.clone(), last: Mutex::default() }
    }

    fn provider(&self) -> Result<Arc<Provider>> {
        let settings = settings(&self.definition, self.dialect, &self.environment)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(provider) = last.as_ref().filter(|last| *last.settings() == settings) {
            return Ok(provider.clone());
        }
        let api_key = self.environment.key_of(&self.definition).map(str::to_owned);
        let environment = self.environment.clone();
        let key = move || api_key.as_deref().map(|text| environment.fill(text)).transpose();
        let provider = Arc::new(Provider::new(settings, Arc::new(key)));
        *last = Some(provider.clone());
        Ok(provider)
    }
}

impl Model for Service {
    fn ask<'a>(&'a self, request: &'a Request) -> ModelFuture<'a> {
        self.ask_watched(request, &|_| {})
    }

    fn ask_watched<'a>(
        &'a self,
        request: &'a Request,
        watch: &'a (dyn Fn(Progress<'_>) + Send + Sync),
    ) -> ModelFuture<'a> {
        Box::pin(async move {
            match self.provider() {
                Ok(provider) => provider.ask_watched(request, watch).await,
                Err(error) => {
                    Err(ModelError::Rejected(format!("nothing was sent: {}; {}", error.what(), error.next())))
                }
            }
        })
    }

    fn shares_limits_as(&self) -> Option<String> {
        let provider = self.provider().ok()?;
        let Settings { base_url, model, .. } = provider.settings();
        let key = self.environment.key_of(&self.definition).map(|text| self.environment.fill(text)).transpose().ok()?;
        let place = Digest::of(&canonical(&json!([self.dialect.name(), model, base_url]))).to_hex();
        // Two bytes of a digest tell keys apart, and are too few to find one by.
        let mark = &Digest::of(&canonical(&json!(key))).to_hex()[..4];
        Some(format!("{} {mark}", &place[..32]))
    }
}

/// Where and how a definition's model is asked now.
///
/// # Errors
///
/// `model.unset` when a variable that name or place refer to is not set, `model.base_url` when the place is none.
pub(super) fn settings(definition: &Definition, dialect: Dialect, environment: &Environment) -> Result<Settings> {
    let spec = &definition.model;
    let unset = |why: String| Error::new("model.unset", why, "set it where the worker runs, then resume");
    let base_url = match environment.base_url_of(definition) {
        Some(text) => environment.fill(text).map_err(unset)?,
        None => dialect.base_url().to_owned(),
    };
    let has_key = environment.key_of(definition).is_some();
    let base_url = sound_url(dialect, &base_url, has_key)
        .map_err(|(what, mend)| Error::new("model.base_url", format!("{base_url}: {what}"), mend))?;
    Ok(Settings {
        dialect,
        base_url,
        model: environment.fill(&spec.name).map_err(unset)?,
        params: spec.params.clone(),
        output_limit_field: environment.output_limit_field_of(definition).and_then(OutputLimitField::named),
        stream: !spec.whole,
        patience: patience(spec),
    })
}

fn patience(spec: &ModelSpec) -> Patience {
    let usual = Patience::default();
    let or = |said: Option<u64>, usual| said.map_or(usual, Duration::from_millis);
    Patience { whole: or(spec.timeout_ms, usual.whole), idle: or(spec.idle_timeout_ms, usual.idle), ..usual }
}

/// A base url as calls go to it: without what a call adds, and without a slash at its end.
///
/// # Errors
///
/// What is wrong with it, and how to mend that. A key is not sent over an open line to another machine, unless its
/// address is one of a private network.
pub(crate) fn sound_url(
    dialect: Dialect,
    text: &str,
    has_key: bool,
) -> std::result::Result<String, (String, &'static str)> {
    let example = "write where the service is, such as \"https://api.example/v1\" or \"http://localhost:11434/v1\"";
    let target = Target::parse(text).map_err(|what| (what, example))?;
    if target.authorization.is_some() {
        return Err(("it holds a user or a password".to_owned(), "take them out; a key stands in `api_key`"));
    }
    if target.path_and_query.query().is_some() || text.contains('#') {
        return Err(("it has a part behind `?` or `#`".to_owned(), "take that out"));
    }
    let url = text.trim_end_matches('/');
    let ends = match dialect {
        Dialect::Anthropic => ["/v1/messages", "/messages"],
        Dialect::OpenAi => ["/chat/completions", "/completions"],
    };
    if let Some(end) = ends.iter().find(|end| url.ends_with(*end)) {
        return Err((format!("it ends with {end}, which each call adds by itself"), "take that out"));
    }
    if has_key && !target.tls && !is_near(&target.host) {
        return Err(("the key would go over an open line".to_owned(), "write https://, or leave out `api_key`"));
    }
    Ok(match dialect {
        // Both forms are in use for this service.
        Dialect::Anthropic => url.strip_suffix("/v1").unwrap_or(url).to_owned(),
        Dialect::OpenAi => url.to_owned(),
    })
}

/// This machine, one of a private network, or one that is named as such.
fn is_near(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(v4)) => v4.is_loopback() || v4.is_private() || v4.is_link_local(),
        Ok(IpAddr::V6(v6)) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
        Err(_) => is_short_name(host) || [".localhost", ".local", ".internal"].iter().any(|end| host.ends_with(end)),
    }
}

/// A name without a dot, of a place's own network. Resolvers take a number for an address, and names of two letters are countries.
fn is_short_name(host: &str) -> bool {
    !host.contains('.') && host.len() > 2 && !host.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_where_the_service_is_and_nothing_else() {
        use Dialect::{Anthropic, OpenAi};
        for (dialect, text, url) in [
            (OpenAi, "http://localhost:11434/v1/", "http://localhost:11434/v1"),
            (OpenAi, "https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1"),
            (OpenAi, "http://192.168.1.7:8000/v1", "http://192.168.1.7:8000/v1"),
            (OpenAi, "http://model-server:8000/v1", "http://model-server:8000/v1"),
            (OpenAi, "http://[::1]:8000/v1", "http://[::1]:8000/v1"),
            (Anthropic, "https://api.anthropic.com/v1", "https://api.anthropic.com"),
            (Anthropic, "https://api.anthropic.com", "https://api.anthropic.com"),
        ] {
            assert_eq!(sound_url(dialect, text, true).as_deref(), Ok(url));
        }
        for (dialect, text, what) in [
            (OpenAi, "localhost:11434/v1", "has to begin with http"),
            (OpenAi, "https://api.example/v1/chat/completions", "ends with /chat/completions"),
            (Anthropic, "https://api.example/v1/messages", "ends with /v1/messages"),
            (OpenAi, "https://me:secret@api.example/v1", "a user or a password"),
            (OpenAi, "https://api.example/v1?key=x", "behind `?`"),
            (OpenAi, "http://api.example/v1", "over an open line"),
            (OpenAi, "http://8.8.8.8/v1", "over an open line"),
            (OpenAi, "http://134744072/v1", "over an open line"),
            (OpenAi, "http://0x08080808/v1", "over an open line"),
            (OpenAi, "http://8.8/v1", "over an open line"),
            (OpenAi, "http://ai/v1", "over an open line"),
        ] {
            let (said, _) = sound_url(dialect, text, true).expect_err(text);
            assert!(said.contains(what), "{text}: {said}");
        }
        assert!(sound_url(OpenAi, "http://api.example/v1", false).is_ok(), "nothing secret is sent");
    }

    #[cfg(feature = "testing")]
    #[test]
    fn what_a_limit_is_counted_by_tells_keys_and_places_apart_and_names_neither() {
        let shared = |key: &'static str, token: &'static str| {
            let values = [("KEY", key), ("TOKEN", token)];
            let environment = Environment::new(move |name| {
                values.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            });
            let mut definition = crate::testing::Script::of_each_class().definition("run", Default::default());
            let base_url = Some("https://gateway.example/${env:TOKEN}/v1".to_owned());
            let (provider, name, api_key) = ("openai".to_owned(), "m".to_owned(), Some("${env:KEY}".to_owned()));
            definition.model = ModelSpec { provider, name, base_url, api_key, ..ModelSpec::default() };
            Service::of(&definition, Dialect::OpenAi, &environment).shares_limits_as().expect("it can be asked")
        };
        let one = shared("k-0123456789", "t-0123456789");
        assert_eq!(one, shared("k-0123456789", "t-0123456789"));
        assert_ne!(one, shared("k-9876543210", "t-0123456789"));
        assert_ne!(one, shared("k-0123456789", "t-9876543210"));
        assert_eq!(one.len(), 32 + 1 + 4, "{one}");
    }

    #[cfg(feature = "testing")]
    #[test]
    fn a_place_that_is_mended_is_asked_with_the_next_call_and_one_that_stays_keeps_its_connections() {
        let said = Arc::new(Mutex::new("nowhere".to_owned()));
        let read = said.clone();
        let environment = Environment::new(move |name| (name == "WHERE").then(|| read.lock().expect("whole").clone()));
        let mut definition = crate::testing::Script::of_each_class().definition("run", Default::default());
        let (base_url, name) = (Some("${env:WHERE}".to_owned()), "m".to_owned());
        definition.model = ModelSpec { provider: "openai".to_owned(), name, base_url, ..ModelSpec::default() };
        let service = Service::of(&definition, Dialect::OpenAi, &environment);
        let say = |place: &str| place.clone_into(&mut said.lock().expect("whole"));
        assert_eq!(service.provider().err().map(|error| error.code()), Some("model.base_url"));
        say("http://127.0.0.1:9/v1");
        let first = service.provider().expect("a place");
        assert!(Arc::ptr_eq(&first, &service.provider().expect("the same")));
        say("http://127.0.0.1:10/v1");
        assert_eq!(service.provider().expect("another").settings().base_url, "http://127.0.0.1:10/v1");
    }
}
