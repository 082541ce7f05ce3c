-- One row for a command about Work, with how the Work stands after it: what a replay is answered. Internal, at the end.
create or replace function "@schema@".record_command(
    p_scope_id text, p_command_id text, p_operation text, p_fingerprint bytea, p_work_id bigint, p_outcome text,
    p_actor text, p_reason text, p_now timestamptz, p_proof_sha256 bytea default null,
    out code text, out state text, out revision bigint)
language plpgsql as $$
begin
    select w.code, w.state, w.revision into code, state, revision from "@schema@".work w where w.work_id = p_work_id;
    insert into "@schema@".operator_command (
        scope_id, command_id, operation, fingerprint, work_id, state, outcome, code, revision, to_state, actor, reason,
        proof_sha256, created_at, finished_at)
    values (p_scope_id, p_command_id, p_operation, p_fingerprint, p_work_id, 'finished', p_outcome, record_command.code,
            record_command.revision, record_command.state, p_actor, p_reason, p_proof_sha256, p_now, p_now);
end $$;
