//! The contract suite on memory and on SQLite.

use conductor_contract::Subject;
use conductor_store::{Database, Memory, Settings};

async fn in_memory() -> Subject {
    Subject::new(Memory::new(), ())
}

async fn on_sqlite() -> Subject {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = Database::open(&dir.path().join("conductor.sqlite"), &Settings::default()).await;
    Subject::new(store.expect("a new database"), dir)
}

mod memory {
    conductor_contract::store_contract!(crate::contract::in_memory);
}

mod sqlite {
    conductor_contract::store_contract!(crate::contract::on_sqlite);
}
