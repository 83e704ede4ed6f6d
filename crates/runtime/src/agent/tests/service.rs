//! `[model]` of a service: what is filled in, and what is refused.

use lodestep_core::definition::{ModelSpec, Price};
use serde_json::json;

use super::Folder;

const HEAD: &str = "format = 1\nagent = { name = \"a\", objective = \"o\" }\n[model]\n";

fn model(said: &str) -> (ModelSpec, Vec<String>) {
    let text = format!("{HEAD}{said}");
    let file = Folder::new().load(&text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    (file.definition.model, file.secrets)
}

#[test]
fn a_service_needs_its_name_and_the_rest_has_its_usual_value() {
    let (spec, secrets) = model("provider = \"anthropic\"\nname = \"m\"");
    assert_eq!((spec.provider.as_str(), spec.name.as_str()), ("anthropic", "m"));
    assert_eq!((spec.base_url, spec.api_key.as_deref()), (None, Some("${env:ANTHROPIC_API_KEY}")));
    assert_eq!((spec.context_window, spec.max_output_tokens, spec.whole), (200_000, 4_096, false));
    assert_eq!(secrets, ["ANTHROPIC_API_KEY"]);
    let (spec, secrets) = model("provider = \"openai\"\nname = \"${env:MODEL:-small}\"");
    assert_eq!((spec.api_key.as_deref(), spec.context_window), (Some("${env:OPENAI_API_KEY}"), 128_000));
    assert_eq!(secrets, ["OPENAI_API_KEY"], "a variable with a default is not needed");
    let (spec, secrets) =
        model("provider = \"openai\"\nname = \"m\"\nbase_url = \"http://localhost:1/v1\"\ncontext_window = 8_000");
    assert_eq!((spec.base_url.as_deref(), spec.api_key), (Some("http://localhost:1/v1"), None));
    assert!(secrets.is_empty(), "another service is not given OpenAI's key");
}

#[test]
fn parameters_prices_and_times_are_kept_as_they_are_written() {
    let (spec, _) = model(
        r#"provider = "anthropic"
name = "m"
params = { temperature = 0.2, thinking = { type = "enabled", budget_tokens = 2_000 }, stop_sequences = ["x"] }
stream = false
timeout = "20m"
idle_timeout = "2m"
price = { input = 3, output = 15, cache_read = 0.3, cache_write = 3.75 }"#,
    );
    let params = json!({
        "temperature": 0.2, "thinking": {"type": "enabled", "budget_tokens": 2_000}, "stop_sequences": ["x"]
    });
    assert_eq!(serde_json::Value::Object(spec.params), params);
    assert!(spec.whole);
    assert_eq!((spec.timeout_ms, spec.idle_timeout_ms), (Some(1_200_000), None), "the usual one says nothing");
    let price = Price {
        input_micro_usd: 3_000_000,
        output_micro_usd: 15_000_000,
        cache_read_micro_usd: Some(300_000),
        cache_write_micro_usd: Some(3_750_000),
    };
    assert_eq!(spec.price, Some(price));
}

#[test]
fn what_no_service_takes_is_refused_with_the_mend() {
    for (said, expected) in [
        ("provider = \"openai\"", &["3:2: [model] has no `name` | add `name = \"gpt-5-mini\"`"][..]),
        (
            "provider = \"openai\"\nname = \" \"\napi_key = \"sk-12345678\"",
            &[
                "5:1: `model.name` is empty | say what it is",
                "6:1: `model.api_key` holds more than a reference to a variable | a key doesn't belong into a file: put it into a variable and write \"${env:API_KEY}\"",
            ],
        ),
        (
            "provider = \"openai\"\nname = \"m\"\nbase_url = \"http://x.example/v1/chat/completions\"",
            &[
                "6:1: `model.base_url`: it ends with /chat/completions, which each call adds by itself | take that out",
                "6:1: [model] has `base_url` and no `context_window` | add `context_window = 32_000`, as many tokens as that model takes",
            ],
        ),
        (
            "provider = \"openai\"\nname = \"m\"\nbase_url = \"http://x.example/v1\"\napi_key = \"${env:K}\"\ncontext_window = 9_000",
            &["6:1: `model.base_url`: the key would go over an open line | write https://, or leave out `api_key`"],
        ),
        (
            "provider = \"anthropic\"\nname = \"m\"\nparams = { max_tokens = 3, system = \"x\", temperature = nan }\ntemperature = 1",
            &[
                "6:12: `model.params.max_tokens` is not for `params` to say | write `max_output_tokens` in [model]",
                "6:28: `model.params.system` is not for `params` to say | take it out: the runtime fills it in",
                "6:42: `model.params.temperature`: nan is no number of JSON | write a finite number",
                "7:1: `temperature` is not what it is called here | write `params = { temperature = … }`",
            ],
        ),
        (
            "provider = \"openai\"\nname = \"m\"\nmax_output_tokens = 4_000\nmax_output_tokens_retry = 3_999",
            &[
                "7:1: `max_output_tokens_retry` = 3999 is less than `max_output_tokens` = 4000 | it is the limit of the one more try after a reply that was cut; make it larger, or take it out",
            ],
        ),
        (
            "provider = \"openai\"\nname = \"m\"\nmax_output_tokens_retry = 8_000\ncontext_window = 8_000",
            &[
                "6:1: a retry of 8000 tokens leaves no room for a request in a window of 8000 | `context_window` is request and reply together; make it larger",
            ],
        ),
        (
            "provider = \"anthropic\"\nname = \"m\"\noutput_limit_field = \"max_tokens\"",
            &["6:1: `model.output_limit_field`: the provider `anthropic` has one name for it | take it out"],
        ),
        (
            "provider = \"openai\"\nname = \"m\"\noutput_limit_field = \"max_completion_token\"\nparams = { max_completion_tokens = 3 }",
            &[
                "6:1: `model.output_limit_field` can't be \"max_completion_token\" | did you mean `max_completion_tokens`?",
                "7:12: `model.params.max_completion_tokens` is not for `params` to say | write `max_output_tokens` in [model], and `output_limit_field` if the place insists on this name",
            ],
        ),
        (
            "provider = \"offline\"\nbase_url = \"http://localhost:1\"\nstream = 1",
            &[
                "5:1: `model.base_url`: the provider `offline` is no service | take it out, or ask a service: provider = \"anthropic\" or \"openai\"",
                "6:1: `model.stream` is a whole number | write true or false",
                "6:1: `model.stream`: the provider `offline` is no service | take it out, or ask a service: provider = \"anthropic\" or \"openai\"",
            ],
        ),
        (
            "provider = \"openai\"\nname = \"m\"\napi_key = \"${env:K:-sk-1}\"\ntimeout = \"2d\"\nprice = { input = 1, output = 1, cached = 1 }",
            &[
                "6:1: `model.api_key` holds more than a reference to a variable | a key doesn't belong into a file: put it into a variable and write \"${env:API_KEY}\"",
                "7:1: `model.timeout` can't be \"2d\" | it has to be 1s to 1d",
                "8:34: `cached` is no key of [model.price] | the keys are input, output, cache_read, cache_write",
            ],
        ),
    ] {
        let errors = Folder::new().load(format!("{HEAD}{said}")).expect_err(said);
        let found: Vec<String> = errors
            .faults()
            .iter()
            .map(|fault| format!("{}:{}: {} | {}", fault.line, fault.column, fault.what, fault.mend))
            .collect();
        assert_eq!(found, expected, "{said}");
    }
}
