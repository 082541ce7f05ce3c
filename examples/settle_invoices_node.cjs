// Settles invoices for settle_invoices_node.py: one line of JSON in for each, one word out.
const { createInterface } = require("node:readline");
const { Pool } = require("pg");

const pool = new Pool({ connectionString: process.env.DSN, max: 5, idle_in_transaction_session_timeout: 30_000 });

const COMPLETE = `
  select outcome
  from onecommit.complete_job(job_id => $1, run_lease => $2, claim_slot => $3, receipt_id => $4, batch_id => $5,
                              batch_index => $6, progress => null)`;

/** Settle one invoice in the commit that completes its job. */
async function settle(token, invoiceId) {
  const state = await askBank(invoiceId); // no transaction is open meanwhile
  const client = await pool.connect();
  try {
    await client.query("begin");
    await client.query("update node_invoice set state = $1 where id = $2", [state, invoiceId]);
    await client.query(COMPLETE, token); // the last statement; let its error end the transaction
    const { command } = await client.query("commit");
    if (command !== "COMMIT") throw new Error("the transaction had failed and was rolled back");
    client.release();
  } catch (error) {
    client.release(true); // closes the connection, so that nothing of it can be committed
    throw error;
  }
}

/** Stands for a call over the network. */
async function askBank() {
  return "settled";
}

async function main() {
  for await (const line of createInterface({ input: process.stdin })) {
    const { token, invoice } = JSON.parse(line);
    await settle(token, invoice).then(
      () => console.log("settled"),
      (error) => console.log(error.code ?? "error"), // OC001: somebody else has this job now
    );
  }
  await pool.end();
}

main();
