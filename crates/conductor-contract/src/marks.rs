//! Words under names, of which the last counts.
//!
//! It does not know what a mark says.

use crate::Subject;

pub(crate) async fn the_last_mark_of_a_name_counts(subject: &Subject) {
    let marks = async |beginning: &str| subject.marks.marks(beginning).await.expect("the store answers");
    assert_eq!(marks("told/").await, []);
    for (name, value) in [
        ("told/run/b", "1"),
        ("told/run/B", "2"),
        ("other/told/", "3"),
        ("told/run/b", "4 %_"),
        ("told_run", "5"),
    ] {
        subject.marks.mark(name, value).await.expect("the mark is put");
    }
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        marks("told/").await,
        [pair("told/run/B", "2"), pair("told/run/b", "4 %_")]
    );
    assert_eq!(marks("told/run/b").await, [pair("told/run/b", "4 %_")]);
}
