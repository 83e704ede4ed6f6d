//! Which model a definition asks, and where: for people. The key is no part of it.

use std::fmt;

use lodestep_core::Definition;
use serde::Serialize;

use crate::secrets::Environment;

/// A model and its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AskedModel {
    /// The provider.
    pub provider: String,
    /// The model's name with it, or the script's file; empty for `offline`.
    pub name: String,
    /// Where the service is, as it is written: what its variables hold may be nobody's business. `None` is the provider's
    /// own place.
    pub base_url: Option<String>,
}

impl AskedModel {
    /// As the definition writes it, and the wiring of this place.
    pub fn written(definition: &Definition, environment: &Environment) -> Self {
        let spec = &definition.model;
        let base_url = environment.base_url_of(definition).map(str::to_owned);
        Self { provider: spec.provider.clone(), name: spec.name.clone(), base_url }
    }

    /// The same, its name as it is asked for from here now. A name that can't be filled in stays as it is written.
    pub fn named(definition: &Definition, environment: &Environment) -> Self {
        let written = Self::written(definition, environment);
        let is_service = crate::model::service::dialect(&written.provider).is_some();
        let name = if is_service { environment.fill(&written.name).ok() } else { None };
        Self { name: name.unwrap_or_else(|| written.name.clone()), ..written }
    }
}

impl fmt::Display for AskedModel {
    /// `openai:qwen3:8b at http://localhost:11434/v1`, `offline`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.provider)?;
        if !self.name.is_empty() {
            write!(out, ":{}", self.name)?;
        }
        self.base_url.iter().try_for_each(|url| write!(out, " at {url}"))
    }
}
