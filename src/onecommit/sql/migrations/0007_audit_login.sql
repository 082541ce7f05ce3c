-- Who was logged in, beside the actor whom a caller names: SET ROLE and the rights of a definer do not change it. Null in
-- rows from before.

alter table "@schema@".operator_action add column login text;
alter table "@schema@".operator_action alter column login set default session_user;

alter table "@schema@".runtime_epoch_history add column login text;
alter table "@schema@".runtime_epoch_history alter column login set default session_user;
