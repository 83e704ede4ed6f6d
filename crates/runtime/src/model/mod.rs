//! The models that the runtime knows by name.

mod script;

use std::path::Path;
use std::sync::Arc;

use lodestep_core::definition::ModelSpec;
use lodestep_core::{Error, Result};
use lodestep_model::Model;
use lodestep_offline::OfflineModel;

pub use script::ScriptModel;

/// The model of a definition.
///
/// # Errors
///
/// `model.unknown` for a provider that this build does not have, `model.script` for a script that can't be read.
pub fn model_of(spec: &ModelSpec) -> Result<Arc<dyn Model>> {
    match spec.provider.as_str() {
        "offline" => Ok(Arc::new(OfflineModel)),
        "script" => Ok(Arc::new(ScriptModel::load(Path::new(&spec.name))?)),
        other => {
            Err(Error::new("model.unknown", format!("this build has no provider `{other}`"), "it has: offline, script"))
        }
    }
}
