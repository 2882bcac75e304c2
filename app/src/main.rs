//! The program `braid`.

fn main() -> std::process::ExitCode {
    #[cfg(not(target_arch = "wasm32"))]
    return braid_app::cli::main();
    #[cfg(target_arch = "wasm32")]
    std::process::ExitCode::FAILURE
}
