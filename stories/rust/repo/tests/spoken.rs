//! Durations as people read them.

use pace::spoken;

#[test]
fn seconds_and_minutes() {
    assert_eq!(spoken(0), "0 s");
    assert_eq!(spoken(59), "59 s");
    assert_eq!(spoken(125), "2 min 5 s");
}
