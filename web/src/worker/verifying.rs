//! Golden cases, held against this browser's device.

use braid_engine::device::{Device, DeviceOptions};
use braid_engine::golden::{CaseFiles, verify as compare};
use wasm_bindgen::prelude::wasm_bindgen;

/// Verify a golden case on a device (`cpu`, `gpu`); the verdict as JSON.
///
/// # Errors
/// If the device cannot be opened, or a file cannot be used.
#[expect(unreachable_pub, reason = "the macro insists on it")]
#[wasm_bindgen]
pub async fn verify(
    device: String,
    config: String,
    case: String,
    model: Vec<u8>,
    expected: Vec<u8>,
) -> Result<String, String> {
    let files = CaseFiles {
        config: &config,
        case: &case,
        model: &model,
        expected: &expected,
    };
    let run = async {
        let device = Device::open(&device.parse()?, &DeviceOptions::default()).await?;
        compare(&files, device.executor()).await
    };
    let verdict = run.await.map_err(|error| error.to_string())?;
    serde_json::to_string(&verdict).map_err(|error| error.to_string())
}
