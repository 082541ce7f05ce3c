"""Pure values: what a job, an attempt, a token or an outcome is. No I/O, no driver, no clock.

- `job`       JobState, Outcome, JobOptions, Enqueued, JobView
- `attempt`   Attempt (one claimed run), Claim and ClaimStatus (what one claim call returned)
- `token`     FinalizationToken and FinalizationReceipt, opaque outside the library
- `outcome`   what a handler may return: Snooze, RetryAfter, Discard, Cancel, Complete
- `closing`   Finish (how an attempt ends other than completed), Loss and Verdict, Cancellation
- `evidence`  the reconciliation table as one pure function
- `retry`     the back-off policy                 - `unique`   what makes two jobs the same
- `payload`   arguments to JSON and back          - `signature` the arguments of a handler
- `work`      Safety, WorkState, Accepted and Duplicate, WorkFence
- `work_exit` what an executor or a reconciler may say       - `work_identifier`  names and codes
- `work_policy`  WorkRetry and WorkPlan           - `work_request`, `fingerprint`  one acceptance
- `queue`, `worker`, `store`   views and names    - `settings` how a store is reached
"""
