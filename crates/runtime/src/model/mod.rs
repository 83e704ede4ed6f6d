//! The models that the runtime knows by name: `offline`, `script`, and those of services (`service`).

mod script;
pub(crate) mod service;

use std::path::Path;
use std::sync::Arc;

use lodestep_core::{Definition, Error, Result};
use lodestep_offline::OfflineModel;

use crate::secrets::Environment;

pub use lodestep_model::{
    Blocks, Call, CallResult, Message, Model, ModelError, ModelFuture, Progress, Reply, Request, StopReason, ToolSpec,
    Usage,
};
pub use script::ScriptModel;

/// The model of a definition.
///
/// # Errors
///
/// `model.unknown` for a provider that this build does not have, `model.script` for a script that can't be read. A service that
/// can't be named here is one that rejects every request: [`check`] says so before.
pub fn model_of(definition: &Definition, environment: &Environment) -> Result<Arc<dyn Model>> {
    let model = named(definition, environment)?;
    #[cfg(feature = "testing")]
    let model = match service::dialect(&definition.model.provider) {
        None => crate::testing::through(&definition.model, model),
        Some(_) => model,
    };
    Ok(model)
}

/// Can a definition's model be asked from here, as far as that can be told without asking?
///
/// # Errors
///
/// As [`model_of`], and `model.unset` and `model.base_url` for a service that can't be named here.
pub fn check(definition: &Definition, environment: &Environment) -> Result<()> {
    match service::dialect(&definition.model.provider) {
        Some(dialect) => service::settings(definition, dialect, environment).map(drop),
        None => named(definition, environment).map(drop),
    }
}

fn named(definition: &Definition, environment: &Environment) -> Result<Arc<dyn Model>> {
    let spec = &definition.model;
    match spec.provider.as_str() {
        "offline" => Ok(Arc::new(OfflineModel)),
        "script" => Ok(Arc::new(ScriptModel::load(Path::new(&spec.name))?)),
        other => match service::dialect(other) {
            Some(dialect) => Ok(Arc::new(service::Service::of(definition, dialect, environment))),
            None => Err(Error::new(
                "model.unknown",
                format!("this build has no provider `{other}`"),
                "it has: anthropic, openai, offline, script",
            )),
        },
    }
}
