//! The browser's private file system, through `storage.js`.

use braid_web::keeping::{Blobs, Trouble};
use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::{JsCast, JsValue, wasm_bindgen};

#[wasm_bindgen]
extern "C" {
    /// What `storage.js` opens.
    pub(crate) type Storage;

    #[wasm_bindgen(method, getter)]
    fn refused(this: &Storage) -> String;

    #[wasm_bindgen(method, catch)]
    async fn names(this: &Storage) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(method, catch)]
    async fn read(this: &Storage, name: &str, from: f64, bytes: f64) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(method, catch)]
    async fn write(
        this: &Storage,
        name: &str,
        from: f64,
        bytes: Uint8Array,
    ) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(method, catch)]
    async fn remove(this: &Storage, name: &str) -> Result<JsValue, JsValue>;
}

/// A folder of this page in the browser's storage.
pub(crate) struct Opfs(Storage);

impl Opfs {
    /// Use it.
    ///
    /// # Errors
    /// `tab`, if another tab has it, or the browser's words.
    pub(crate) fn of(storage: Storage) -> Result<Self, String> {
        let refused = storage.refused();
        if refused.is_empty() {
            Ok(Self(storage))
        } else {
            Err(refused)
        }
    }
}

fn trouble(error: JsValue) -> Trouble {
    match error.as_string() {
        Some(words) if words == "full" => Trouble::Full,
        Some(words) => Trouble::Other(words),
        None => Trouble::Other(format!("{error:?}")),
    }
}

// The numbers are bytes of files: f64 is exact up to 2^53.
impl Blobs for Opfs {
    async fn names(&self) -> Result<Vec<String>, Trouble> {
        let names = self.0.names().await.map_err(trouble)?;
        let names: Array = names.unchecked_into();
        Ok(names.iter().filter_map(|name| name.as_string()).collect())
    }

    async fn read(&self, name: &str, from: u64, bytes: u64) -> Result<Vec<u8>, Trouble> {
        let read = self.0.read(name, from as f64, bytes as f64).await;
        Ok(Uint8Array::new(&read.map_err(trouble)?).to_vec())
    }

    async fn write(&self, name: &str, from: u64, bytes: &[u8]) -> Result<(), Trouble> {
        let bytes = Uint8Array::from(bytes);
        let written = self.0.write(name, from as f64, bytes).await;
        written.map(|_| ()).map_err(trouble)
    }

    async fn remove(&self, name: &str) -> Result<(), Trouble> {
        self.0.remove(name).await.map(|_| ()).map_err(trouble)
    }
}
