fn main() {
    let object = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bpf/bpfel-unknown-none/release/observer-ebpf");
    println!("cargo:rerun-if-changed={}", object.display());
    println!("cargo:rustc-env=OBSERVER_PROBE_OBJECT={}", object.display());
}
