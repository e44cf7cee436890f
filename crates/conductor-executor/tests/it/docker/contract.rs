//! Every case of the executors' contract on `docker`.

conductor_contract::executor_contract!(crate::docker::kit::subject);
