//! The engine against the fakes: one binary, one module per protection.

mod golden;
mod log;
mod policies;
mod overrides;
mod trust;
mod merging;
mod tools;
mod bounds;
mod aside;
mod stop;
mod flow;
mod forge_tools;
mod look;
mod seen;
mod tell;
mod sandboxes;
