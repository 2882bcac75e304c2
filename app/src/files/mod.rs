//! The files that runs are kept in, by the names of [`std::fs`].
//!
//! On native systems it *is* `std::fs`. In a browser it is [`memory`]: a tree that behaves the same, whose content the worker
//! copies to the browser's storage between two slices of work, and fetches from there when somebody asks with [`bring`].

pub mod memory;

#[cfg(not(target_arch = "wasm32"))]
mod disk;

#[cfg(not(target_arch = "wasm32"))]
pub use disk::{
    File, bring, create_dir_all, exists, is_dir, is_file, len, modified, read, read_dir,
    read_to_string, remove_dir, remove_dir_all, remove_file, rename,
};
#[cfg(target_arch = "wasm32")]
pub use memory::{
    File, bring, create_dir_all, exists, is_dir, is_file, len, modified, read, read_dir,
    read_to_string, remove_dir, remove_dir_all, remove_file, rename,
};
