//! An application in Rust with tokio-postgres: one connection, told by lines of JSON what to do in its transaction.

use serde_json::{json, Value};
use std::io::{self, BufRead, Write};
use tokio_postgres::{Client, Error, NoTls, Row, Transaction};

const COMPLETE: &str = "
    select contract_version, outcome, (extract(epoch from finished_at) * 1000000)::bigint as finished_us, transaction_id
    from onecommit.complete_job(job_id => $1, run_lease => $2, claim_slot => $3, receipt_id => $4, batch_id => $5,
                                batch_index => $6, progress => $7::text::jsonb)";
const ENQUEUE: &str = "
    select job_ids
    from onecommit.enqueue_jobs(p_queue => $1, p_kinds => $2, p_args => $3, p_options => null, p_epoch => $4)";

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(serve());
}

async fn serve() {
    let dsn = std::env::args().nth(1).expect("a connection string");
    let (mut client, connection) = tokio_postgres::connect(&dsn, NoTls).await.unwrap();
    tokio::spawn(connection);
    while let Some(request) = next() {
        match request["action"].as_str() {
            Some("begin") => in_transaction(&mut client).await,
            _ => answer(Ok(json!({}))),
        }
    }
}

/// The driver's own transaction, from its beginning to its end.
async fn in_transaction(client: &mut Client) {
    let mut transaction = client.transaction().await.unwrap();
    answer(Ok(json!({})));
    while let Some(request) = next() {
        match request["action"].as_str() {
            Some("commit") => return answer(transaction.commit().await.map(|_| json!({}))),
            Some("rollback") => return answer(transaction.rollback().await.map(|_| json!({}))),
            Some("savepoint") => in_savepoint(&mut transaction).await,
            _ => answer(run(&transaction, &request).await),
        }
    }
}

/// A transaction inside a transaction, which is a savepoint.
async fn in_savepoint(outer: &mut Transaction<'_>) {
    let inner = outer.transaction().await.unwrap();
    answer(Ok(json!({})));
    while let Some(request) = next() {
        match request["action"].as_str() {
            Some("release") => return answer(inner.commit().await.map(|_| json!({}))),
            _ => answer(run(&inner, &request).await),
        }
    }
}

async fn run(transaction: &Transaction<'_>, request: &Value) -> Result<Value, Error> {
    let given = &request["given"];
    match request["action"].as_str() {
        Some("execute") => transaction.batch_execute(text(&given[0])).await.map(|_| json!({})),
        Some("enqueue") => enqueue(transaction, given).await,
        Some("complete") => complete(transaction, given).await,
        _ => panic!("no such action"),
    }
}

async fn enqueue(transaction: &Transaction<'_>, given: &Value) -> Result<Value, Error> {
    let (kinds, args) = (texts(&given[1]), texts(&given[2]));
    let row = transaction
        .query_one(ENQUEUE, &[&text(&given[0]), &kinds, &args, &number(&given[3])])
        .await?;
    Ok(json!({ "row": { "job_ids": row.get::<_, Vec<i64>>("job_ids") } }))
}

async fn complete(transaction: &Transaction<'_>, given: &Value) -> Result<Value, Error> {
    let token: Vec<i64> = given[0].as_array().unwrap().iter().map(number).collect();
    let (claim_slot, batch_index) = (token[2] as i32, token[5] as i32);
    let progress = given[1].as_str();
    let row = transaction
        .query_one(
            COMPLETE,
            &[&token[0], &token[1], &claim_slot, &token[3], &token[4], &batch_index, &progress],
        )
        .await?;
    Ok(json!({ "row": receipt(&row) }))
}

fn receipt(row: &Row) -> Value {
    json!({
        "contract_version": row.get::<_, i32>("contract_version"),
        "outcome": row.get::<_, &str>("outcome"),
        "finished_us": row.get::<_, i64>("finished_us"),
        "transaction_id": row.get::<_, i64>("transaction_id"),
    })
}

fn next() -> Option<Value> {
    let line = io::stdin().lock().lines().next()?.unwrap();
    Some(serde_json::from_str(&line).unwrap())
}

fn answer(result: Result<Value, Error>) {
    let reply = result.unwrap_or_else(|error| match error.as_db_error() {
        Some(db) => json!({ "error": db.message(), "sqlstate": db.code().code(), "hint": db.hint() }),
        None => json!({ "error": error.to_string() }),
    });
    println!("{reply}");
    io::stdout().flush().unwrap();
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(text).collect()
}

/// Numbers travel as texts: JSON readers round those that need 64 bits.
fn number(value: &Value) -> i64 {
    text(value).parse().unwrap()
}
