//! Linking.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Threads of ours run its code, and nothing would stop them in time if somebody unloaded it.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
