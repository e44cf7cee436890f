//! Every case of the executors' contract on `local`.

conductor_contract::executor_contract!(crate::local::kit::subject);
