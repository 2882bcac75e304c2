//! A report of runs as one HTML file: figures inline as SVG, their data as links that hold it, nothing from a network.

pub mod document;
pub mod element;
pub mod material;
pub mod svg;

pub use document::document;
pub use material::Material;
