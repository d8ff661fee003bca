//! The statement on PSA and PA has the numbers of the committed records.
//!
//! `STRIPEWISE_WRITE_DOCS=1 cargo test -p stripewise-evaluate --test statement` updates the
//! numbers.

use std::path::Path;

use stripewise_evaluate::{Document, Place, statement};

#[test]
fn its_tables_are_those_of_the_records() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let (page, records) = (docs.join("psa-and-pa.md"), docs.join("evaluation/simulated.json"));
    let text = std::fs::read_to_string(&page).unwrap();
    assert_eq!(text.matches("<!-- table ").count(), text.matches("<!-- end -->").count());
    let json = std::fs::read_to_string(&records).unwrap();
    let document = Document::parse(&json, "simulated.json", Place::Simulated).unwrap();
    let filled = statement::filled(&text, &document.records);
    if std::env::var_os("STRIPEWISE_WRITE_DOCS").is_some() {
        std::fs::write(&page, &filled).unwrap();
    } else {
        assert_eq!(filled, text, "docs/psa-and-pa.md differs from the records: see the head of this test");
    }
}
