//! The program `braid`.

fn main() -> std::process::ExitCode {
    quiet_driver();
    #[cfg(not(target_arch = "wasm32"))]
    return braid_app::cli::main();
    #[cfg(target_arch = "wasm32")]
    std::process::ExitCode::FAILURE
}

/// Mesa's device-select layer looks for a Wayland display and prints "error: XDG_RUNTIME_DIR is invalid" where there is
/// none, such as on a server. It only reorders adapters, and Braid orders them itself: switch it off there.
fn quiet_driver() {
    let unset = |name: &str| std::env::var_os(name).is_none();
    if cfg!(target_os = "linux") && unset("XDG_RUNTIME_DIR") && unset("NODEVICE_SELECT") {
        #[expect(
            unsafe_code,
            reason = "the first statement of the program: there is no other thread"
        )]
        // SAFETY: no other thread can read the environment yet.
        unsafe {
            std::env::set_var("NODEVICE_SELECT", "1");
        }
    }
}
