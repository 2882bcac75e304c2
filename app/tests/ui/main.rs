//! The window, drawn without a screen: from events that a real training gave.

mod acts;
mod first_start;
mod harness;
mod images;
mod kept;
mod keys;
mod page;
mod phone;
mod routing;
mod rulers;
mod setup;
mod whole;
