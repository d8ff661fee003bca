//! Linking.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Threads of ours run its code, and nothing would stop them in time if somebody unloaded it.
    // C code in here allocates from our heaps: src/heap/c.rs.
    for function in ["malloc", "calloc", "realloc", "free", "strdup"] {
        println!("cargo::rustc-link-arg=-Wl,--wrap={function}");
    }
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
