//! The contract suite on memory, on SQLite and on PostgreSQL.

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

async fn on_postgres() -> Subject {
    let address = crate::postgres::database().await;
    let store = Database::connect(&address, &Settings::default()).await;
    Subject::new(store.expect("a new database"), ())
}

mod memory {
    conductor_contract::store_contract!(crate::contract::in_memory);
}

mod sqlite {
    conductor_contract::store_contract!(crate::contract::on_sqlite);
}

mod postgres {
    conductor_contract::store_contract!(crate::contract::on_postgres);
}
