// An application in Node with the driver `pg`: one connection, told by lines of JSON what to do in its transaction.
import { createInterface } from "node:readline";
import pg from "pg";

const COMPLETE = `
  select contract_version, outcome, (extract(epoch from finished_at) * 1000000)::bigint as finished_us, transaction_id
  from onecommit.complete_job(job_id => $1, run_lease => $2, claim_slot => $3, receipt_id => $4, batch_id => $5,
                              batch_index => $6, progress => $7)`;
const ENQUEUE = `
  select job_ids
  from onecommit.enqueue_jobs(p_queue => $1, p_kinds => $2, p_args => $3, p_options => null, p_epoch => $4)`;

const client = new pg.Client({ connectionString: process.argv[2] });
client.on("error", () => {}); // a lost connection is told by the next query
await client.connect();

const actions = {
  execute: (statement) => client.query(statement),
  enqueue: (queue, kinds, args, epoch) => client.query(ENQUEUE, [queue, kinds, args, epoch]),
  complete: (token, progress) => client.query(COMPLETE, [...token, progress]),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { action, given } = JSON.parse(line);
  try {
    const { command, rows } = await actions[action](...given);
    console.log(JSON.stringify({ command, row: rows?.[0] }));
  } catch (error) {
    console.log(JSON.stringify({ error: error.message, sqlstate: error.code, hint: error.hint }));
  }
}
await client.end();
