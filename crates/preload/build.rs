//! Linker arguments of the preload library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // `nodelete`: threads of the library run its code, and `dlclose` would not stop them in time.
    // `wrap`: C code that is linked in allocates from the library's own heaps
    // (src/process/heap/c.rs).
    for function in ["malloc", "calloc", "realloc", "free", "strdup"] {
        println!("cargo::rustc-link-arg=-Wl,--wrap={function}");
    }
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
